package domain

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-pg/holdfast/gen"
)

// Status is where a job is in its life. A job that waits for a retry is pending with a
// future AvailableAt.
type Status = gen.InboxStatus

// The states of a job.
const (
	StatusPending    Status = gen.HoldfastInboxStatusPending
	StatusProcessing Status = gen.HoldfastInboxStatusProcessing
	StatusCompleted  Status = gen.HoldfastInboxStatusCompleted
	StatusFailed     Status = gen.HoldfastInboxStatusFailed
	StatusDeadLetter Status = gen.HoldfastInboxStatusDeadLetter
)

// RetentionMode is what a completion does with the job's row.
type RetentionMode = gen.RetentionMode

// The retention modes of a queue.
const (
	RetentionArchive RetentionMode = gen.HoldfastRetentionModeArchive
	RetentionKeep    RetentionMode = gen.HoldfastRetentionModeKeep
	RetentionDrop    RetentionMode = gen.HoldfastRetentionModeDrop
)

// JobID is a UUIDv7 (RFC 9562) whose low 14 bits hold the job's bucket, so that an id alone
// addresses its row.
type JobID [16]byte

// bucketBits masks the bucket in the last two bytes of a JobID.
const bucketBits = 1<<14 - 1

// NewJobID lays out an id as the SQL function holdfast.new_job_id does: 48 bits of Unix
// milliseconds, version 7, 58 random bits, 14 bits of bucket.
func NewJobID(now time.Time, bucket int) JobID {
	var id JobID
	_, _ = rand.Read(id[6:14])
	var milliseconds [8]byte
	binary.BigEndian.PutUint64(milliseconds[:], uint64(now.UnixMilli()))
	copy(id[:6], milliseconds[2:])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	binary.BigEndian.PutUint16(id[14:], uint16(bucket&bucketBits))
	return id
}

// ParseJobID reads an id in its text form, such as 0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01f4.
// Anything else is an InvalidError.
func ParseJobID(text string) (JobID, error) {
	invalid := &InvalidError{Field: "job id", Reason: fmt.Sprintf("%.60q is not a UUID", text)}
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return JobID{}, invalid
	}
	digits := text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
	var id JobID
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		return JobID{}, invalid
	}
	return id, nil
}

// Bucket returns the bucket that the id carries.
func (id JobID) Bucket() int {
	return int(binary.BigEndian.Uint16(id[14:])) & bucketBits
}

// String returns the text form of the id.
func (id JobID) String() string {
	digits := hex.EncodeToString(id[:])
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}

// MarshalText returns the text form of the id.
func (id JobID) MarshalText() ([]byte, error) {
	return []byte(id.String()), nil
}

// UnmarshalText reads what MarshalText wrote.
func (id *JobID) UnmarshalText(text []byte) error {
	parsed, err := ParseJobID(string(text))
	if err == nil {
		*id = parsed
	}
	return err
}

func (id JobID) uuid() pgtype.UUID {
	return pgtype.UUID{Bytes: id, Valid: true}
}

func uuids(ids []JobID) []pgtype.UUID {
	converted := make([]pgtype.UUID, len(ids))
	for i, id := range ids {
		converted[i] = id.uuid()
	}
	return converted
}

// ClaimedJob is a job as its claim returned it.
type ClaimedJob struct {
	Claim

	Seq            int64           // Enqueue order.
	Queue          string          // The queue it was claimed from.
	Kind           string          // Names its handler.
	PartitionKey   string          // What the job belongs to.
	IdempotencyKey string          // The key it was enqueued once under; "" without one.
	Attempt        int             // This attempt, counted from 1.
	MaxAttempts    int             // The last attempt.
	AvailableAt    time.Time       // When it could first be claimed, by the database's clock.
	Waited         time.Duration   // From then until it was claimed, by the database's clock.
	CreatedAt      time.Time       // When it was enqueued, by the database's clock.
	Headers        json.RawMessage // Facts beside the payload, a JSON object; nil without any.
	Payload        json.RawMessage // What the producer sent.
	Retention      RetentionMode   // What its completion does with the row.
}

// Job is a claimed job with its payload decoded, as a handler gets it.
type Job[T any] struct {
	ClaimedJob

	// Args is the payload.
	Args T
}

// DecodeJob decodes a claimed job's payload. The error of one that does not decode fails the
// job for good.
func DecodeJob[T any](claimed ClaimedJob) (Job[T], error) {
	job := Job[T]{ClaimedJob: claimed}
	if err := json.Unmarshal(claimed.Payload, &job.Args); err != nil {
		return job, FailWith(fmt.Errorf("decode the payload: %w", err))
	}
	return job, nil
}
