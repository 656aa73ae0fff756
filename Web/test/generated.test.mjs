// Tests a client that is generated from the actors of the program, with the program.
import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import { fileURLToPath } from "node:url"
import { Daemon, tool, until } from "./daemon.mjs"

const root = fileURLToPath(new URL("../../", import.meta.url))
const limits = { skip: tool ? false : "TREBUCHET_TOOL is not set", timeout: 60_000 }

test("a generated client calls, observes, and decodes the error of a method", limits, async () => {
    const folder = mkdtempSync(join(tmpdir(), "generated-"))
    const daemon = await Daemon.start()
    const client = daemon.connect()
    try {
        const source = join(folder, "demo.ts")
        const runtime = join(root, "Web/dist/trebuchet.js")
        execFileSync(
            tool,
            ["generate", "typescript", "Sources/Tools/TrebuchetCLI/Demo", "--runtime", runtime, "--output", source],
            { cwd: root }
        )
        execFileSync("esbuild", [source, "--bundle", "--format=esm", "--log-level=warning", `--outfile=${source}.mjs`])
        const { TodoList, UUID } = await import(`${source}.mjs`)
        const todos = client.actor(TodoList, "todos")
        const item = await todos.addTodo("Milk")
        assert.equal(item.title, "Milk")
        const state = await until(todos.state, (state) => state?.todos.some((each) => each.title === "Milk"))
        assert.deepEqual(state.todos, [item])
        assert.equal((await todos.toggleTodo(item.id)).isDone, true)
        await until(todos.state, (state) => state.todos[0].isDone)
        const id = UUID("00000000-0000-0000-0000-00000000000a")
        const outcome = await todos.removeTodo(id).result()
        assert.equal(outcome.ok, false)
        assert.deepEqual(outcome.error.data, { id: "00000000-0000-0000-0000-00000000000A" })
        assert.equal(await client.actor(TodoList, "todos").removeTodo(item.id), undefined)
        await until(todos.state, (state) => state.todos.length === 0)
    } finally {
        client.close()
        await daemon.end()
        rmSync(folder, { recursive: true })
    }
})
