package domain

import (
	"crypto/sha256"
)

// BucketOf returns the bucket of a partition key: the first 24 bits of the SHA-256 of its
// UTF-8 bytes, modulo the bucket count. Frozen: the SQL function holdfast.bucket_of computes
// the same, and rows keep the bucket they were given.
func BucketOf(partitionKey string, bucketCount int) int {
	return int(hashOf(partitionKey)) % bucketCount
}

// hashOf returns the 24 bits that decide about a partition key's bucket.
func hashOf(partitionKey string) int32 {
	sum := sha256.Sum256([]byte(partitionKey))
	return int32(sum[0])<<16 | int32(sum[1])<<8 | int32(sum[2])
}
