// A window with the page of scripts/cluster: its buttons kill and restart nodes, and its calls and streams continue.
// Needs the programs of browser.test.mjs, and Redis and nginx.
import assert from "node:assert/strict"
import { spawn } from "node:child_process"
import { createServer } from "node:net"
import { join } from "node:path"
import { createInterface } from "node:readline"
import test, { after, before } from "node:test"
import { fileURLToPath } from "node:url"
import { Chromium } from "./chromium.mjs"

const root = fileURLToPath(new URL("../../..", import.meta.url))
let chromium, cluster, url

function freePort() {
    return new Promise((resolve) => {
        const server = createServer().listen(0, "127.0.0.1", () => {
            const { port } = server.address()
            server.close(() => resolve(port))
        })
    })
}

for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => process.exit(1))
process.once("exit", () => {
    cluster?.kill("SIGKILL")
    chromium?.kill()
})

before(async () => {
    chromium = await Chromium.start(process.env.TREBUCHET_BROWSER)
    cluster = spawn(join(root, "scripts/cluster"), ["--port", String(await freePort())], {
        env: { ...process.env, TREBUCHET: join(process.env.TREBUCHET_PROGRAMS, "trebuchet") }, stdio: ["ignore", "pipe", "inherit"],
    })
    cluster.ended = new Promise((resolve) => cluster.once("exit", resolve))
    url = await new Promise((resolve, reject) => {
        createInterface(cluster.stdout).on("line", (line) => {
            const found = /http:\/\/\S+/.exec(line)
            if (found) resolve(found[0])
        })
        cluster.ended.then((status) => reject(new Error(`scripts/cluster ended with ${status}`)))
    })
})

after(async () => {
    cluster?.kill("SIGTERM")
    assert.equal(await cluster?.ended, 0, "all end in order")
    await chromium?.close()
})

const rows = `[...document.querySelectorAll("#counters tr")].map((row) => [...row.cells].map((cell) => cell.textContent))`

test("the counters of a killed node continue at another node, and no call is lost or executed twice", async () => {
    const window = await chromium.open(`${url}#test`, { height: 720 })
    await window.shows("live", "[role=status]")
    /** Waits until each counter has advanced by this number of versions, and has an owner. */
    const further = async (count) => {
        const before = (await window.evaluate(rows)).map((row) => Number(row[2]))
        await window.until(`${rows}.every((row, index) => row[1] && row[2] >= ${JSON.stringify(before)}[index] + ${count})`)
    }
    /** The owner node of the first counter; none for a moment. */
    const ownerOfFirst = async () => {
        for (;;) {
            const [[, owner]] = await window.evaluate(rows)
            if (/one|two|three/.test(owner)) return owner
            await new Promise((done) => setTimeout(done, 100))
        }
    }
    await further(3)
    for (const round of [1, 2]) {
        const owner = await ownerOfFirst()
        await window.click(`#node-${owner} [data-do=kill]`)
        await window.until(`document.querySelector("#node-${owner}").dataset.state === "killed"`)
        await further(3)
        await window.until(`${rows}.every((row) => row[1] !== "${owner}")`)
        if (round === 1) await window.picture("cluster")
        await window.click(`#node-${owner} [data-do=start]`)
        await window.until(`document.querySelector("#node-${owner}").dataset.state === "running"`)
    }
    const owner = await ownerOfFirst()
    await window.click(`#node-${owner} [data-do=stop]`)
    await window.until(`document.querySelector("#node-${owner}").dataset.state === "stopped"`)
    await further(3)
    for (const [name, , , answered, , , failed] of await window.evaluate(rows)) {
        assert.equal(failed, "0", `calls of ${name} failed`)
        assert.ok(answered > 3)
    }
    await window.shows("No version went back, and no answer came twice.", "#judgement")
    // No other client calls these counters: their values are the acknowledged calls and the one in flight.
    await window.click("#running")
    await window.until(`${rows}.every((row) => row[2] === row[3])`)
    await window.close()
})
