import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import test from "node:test"
import { fileURLToPath } from "node:url"
import { exact } from "../dist/trebuchet-exact.js"
import { problems } from "./vectors.mjs"

const folder = fileURLToPath(new URL("../vectors/", import.meta.url))
const rows = JSON.parse(readFileSync(join(folder, "values.json"), "utf8"))

test("values encoded by Swift are decoded, and encoded as Swift does", async () => {
    const built = mkdtempSync(join(tmpdir(), "vectors-"))
    try {
        const output = join(built, "vectors.mjs")
        execFileSync("esbuild", [join(folder, "vectors.ts"), "--bundle", "--format=esm", "--log-level=warning", `--outfile=${output}`])
        const { Vectors } = await import(output)
        assert.ok(rows.length > 50)
        assert.deepEqual(problems(rows, Vectors, exact), [])
        // Errors are detected.
        const wrong = [
            { method: "date", json: '"2026-01-01T00:00:00.000Z"', value: { type: "Date", milliseconds: 0 } },
            { method: "byName", json: "{}", value: { type: "Map", entries: [] } },
            { method: "wide", json: "9223372036854775807", value: { type: "bigint", text: "9223372036854775808" } },
        ]
        for (const row of wrong) assert.notDeepEqual(problems([row], Vectors, exact), [], row.method)
    } finally {
        rmSync(built, { recursive: true })
    }
})
