-- name: ListRoles :many
-- ListRoles lists the roles that have a duty here, and whether the server has them. Called by
-- domain/roles.go. Index: roles_pkey.
SELECT
    role.name,
    role.duty,
    (known.rolname IS NOT NULL)::boolean AS exists_on_server
FROM holdfast.roles AS role
LEFT JOIN pg_catalog.pg_roles AS known ON known.rolname = role.name
ORDER BY role.name
LIMIT @max_rows::integer;

-- name: ListMissingPrivileges :many
-- ListMissingPrivileges lists what roles lack of what their duty needs: somebody took it away,
-- or a migration was run without holdfast.grant_roles(). Called by domain/roles.go. No row for
-- a role that is gone. Index: roles_pkey.
SELECT
    role.name,
    role.duty,
    missing.object_type::text AS object_type,
    missing.object::text AS object,
    missing.privilege::text AS privilege,
    COALESCE(missing.columns, '{}')::text[] AS columns
FROM holdfast.roles AS role
CROSS JOIN LATERAL holdfast.missing_privileges(role.duty, role.name) AS missing
ORDER BY
    role.name,
    missing.object,
    missing.privilege
LIMIT @max_rows::integer;

-- name: CreateRoles :one
-- CreateRoles makes four roles whose names begin with the prefix, unless they exist, grants each
-- its duty, and tells how many it made. Called by domain/roles.go. Locks: holdfast.roles,
-- against others that grant.
SELECT holdfast.create_roles(@prefix::text)::integer AS created;

-- name: GrantRole :one
-- GrantRole lets a role do what a duty asks, and nothing else here. Called by domain/roles.go.
-- Zero rows: the server has no such role. Locks: as CreateRoles.
SELECT holdfast.grant_role(@duty::text, role.rolname::text)::integer AS privileges
FROM pg_catalog.pg_roles AS role
WHERE role.rolname = @role_name::text;

-- name: GrantRoles :one
-- GrantRoles grants again to each role what its duty needs, and tells how many roles there are.
-- Called by domain/roles.go. Locks: as CreateRoles.
SELECT holdfast.grant_roles()::integer AS roles;

-- name: RevokeRole :one
-- RevokeRole takes from a role what it may do here, and tells whether it had a duty. Called by
-- domain/roles.go. Locks: as CreateRoles.
SELECT holdfast.revoke_role(@role_name::text)::boolean AS known;
