-- name: DrawSeq :one
-- DrawSeq finds the sequence only while search_path holds the schema.
SELECT nextval('inbox_seq') AS seq;
