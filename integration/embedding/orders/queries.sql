-- name: InsertOrder :exec
INSERT INTO orders (id) VALUES (@id);
