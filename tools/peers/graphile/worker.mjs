// The Graphile Worker that bench-peers measures. `node worker.mjs migrate` makes its schema.
// `node worker.mjs work` says that it is ready, works from the line "go" on, and stops when
// standard input ends. The database's address is in HOLDFAST_PEERS_URL, the settings in
// HOLDFAST_PEERS_GRAPHILE.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { Logger, run, runMigrations } from "graphile-worker";

const require = createRequire(import.meta.url);
const version = (name) => require(`${name}/package.json`).version;

const options = {
  connectionString: process.env.HOLDFAST_PEERS_URL,
  logger: new Logger(() => (level, message) => {
    if (level === "error" || level === "warning") console.error(`graphile worker: ${message}`);
  }),
  noHandleSignals: true,
  preset: { worker: JSON.parse(process.env.HOLDFAST_PEERS_GRAPHILE) },
};

if (process.argv[2] === "migrate") {
  await runMigrations(options);
} else {
  const input = createInterface({ input: process.stdin });
  const ended = new Promise((resolve) => input.once("close", resolve));
  console.log(`ready graphile-worker ${version("graphile-worker")}, pg ${version("pg")}, node ${process.version}`);
  await new Promise((resolve) => input.once("line", resolve));
  const runner = await run({ ...options, taskList: { noop: async () => {} } });
  await ended;
  await runner.stop();
}
