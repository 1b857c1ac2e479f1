package domain

import (
	"crypto/sha256"
)

// BucketOf returns the bucket of a partition key: the first 24 bits of the SHA-256 of its
// UTF-8 bytes, modulo the bucket count. Frozen: the SQL function holdfast.bucket_of computes
// the same, and rows keep the bucket they were given.
func BucketOf(partitionKey string, bucketCount int) int {
	sum := sha256.Sum256([]byte(partitionKey))
	return (int(sum[0])<<16 | int(sum[1])<<8 | int(sum[2])) % bucketCount
}
