// The services in Chromium: pending writes are in its IndexedDB, and its tabs do not send those of others.
import assert from "node:assert/strict"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import test, { after, before } from "node:test"
import { fileURLToPath } from "node:url"
import { Chromium } from "./chromium.mjs"
import { Server } from "./server.mjs"

const web = fileURLToPath(new URL("../..", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "browser-"))
const options = ["--static", web, "--data", join(folder, "services.db")]
const server = new Server(
    join(process.env.TREBUCHET_PROGRAMS, "trebuchet"), (port) => ["serve", "--port", String(port), ...options], folder)
let chromium

for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => process.exit(1))
process.once("exit", () => {
    server.process?.kill("SIGKILL")
    chromium?.kill()
})
before(async () => {
    chromium = await Chromium.start(process.env.TREBUCHET_BROWSER)
    await server.start()
})
after(async () => {
    await server.kill()
    await chromium?.close()
    rmSync(folder, { recursive: true })
})

/** Connects a page, and stores its shown notes in `window.shown`. */
const begin = `(async () => {
    const { services } = await import("/dist/trebuchet-services.js")
    window.backend = services("/", { storage: localStorage, initialDelay: 20, maximumDelay: 200 })
    window.notes = backend.collection("notes")
    window.query = notes.query({ order: "text" })
    query.subscribe(() => (window.shown = query.getSnapshot()?.map((each) => each.text)))
})()`

async function page(beside) {
    const window = await chromium.open(`${server.url}/vectors/values.json`, { beside })
    await window.until(`location.pathname === "/vectors/values.json" && document.readyState === "complete"`)
    await window.evaluate(begin)
    return window
}

const shows = (texts) => `JSON.stringify(window.shown) === ${JSON.stringify(JSON.stringify(texts))}`

test("pending writes survive the page and the server, and two tabs send each of them once", async () => {
    const one = await page()
    await one.evaluate(`backend.auth.signInAsGuest()`)
    const other = await page(one)
    await Promise.all([one, other].map((each) => each.until(`backend.auth.getSnapshot().phase === "signedIn"`)))
    await one.evaluate(`notes.create({ id: "a", text: "a" })`)
    await Promise.all([one, other].map((each) => each.until(shows(["a"]))))
    // The file that persists writes is loaded on demand: without it and without a connection nothing can be written.
    const keeps = `performance.getEntriesByType("resource").some((each) => each.name.includes("trebuchet-offline.js") && each.responseEnd > 0)`
    await Promise.all([one, other].map((each) => each.until(keeps)))

    await server.kill()
    await Promise.all([one, other].map((each) => each.until(`backend.client.status.getSnapshot().phase !== "live"`)))
    for (const id of ["b", "c"]) await one.evaluate(`void notes.create({ id: "${id}", text: "${id}" })`)
    await other.evaluate(`void notes.create({ id: "d", text: "d" })`)
    await one.evaluate(`void notes.increment("a", "count", 1)`)
    await other.evaluate(`void notes.increment("a", "count", 1)`)
    // Shown at once in the tab that made them.
    await one.until(shows(["a", "b", "c"]))
    await other.until(shows(["a", "d"]))
    // One tab is closed with unsent writes; the other one sends the persisted ones.
    await other.until(`query.status.getSnapshot().pending === 2`)
    await one.until(`query.status.getSnapshot().pending === 3`)
    const kept = `(async () => {
        let count = 0
        for (const { name } of await indexedDB.databases()) {
            const database = await new Promise((resolve, reject) => {
                const request = indexedDB.open(name)
                request.onsuccess = () => resolve(request.result)
                request.onerror = () => reject(request.error)
            })
            for (const store of database.objectStoreNames) {
                count += await new Promise((resolve) => {
                    database.transaction(store).objectStore(store).count().onsuccess = (event) => resolve(event.target.result)
                })
            }
            database.close()
        }
        return count
    })()`
    while ((await other.evaluate(kept)) !== 5) await new Promise((resolve) => setTimeout(resolve, 20))
    await one.close()
    await server.start()
    await other.until(shows(["a", "b", "c", "d"]))
    await other.until(`query.status.getSnapshot().pending === 0 && query.document("a").fields.count === 2`)
    while ((await other.evaluate(kept)) !== 0) await new Promise((resolve) => setTimeout(resolve, 20))

    // A reloaded page is still signed in, and shows each document once.
    await other.send("Page.reload")
    await other.until(`window.backend === undefined && document.readyState === "complete"`)
    await other.evaluate(begin)
    await other.until(shows(["a", "b", "c", "d"]))
    const found = await other.evaluate(`notes.get()`)
    assert.deepEqual(found.documents.map(({ fields }) => fields.count ?? 0).sort(), [0, 0, 0, 2])
    assert.deepEqual([one.thrown, other.thrown], [[], []])
})

test("a member of a room sees the others, and receives their events", async () => {
    const [one, other] = await Promise.all([page(), page()])
    for (const [window, name] of [[one, "Ada"], [other, "Grace"]]) {
        await window.evaluate(`backend.auth.signInAsGuest()`)
        await window.evaluate(`{
            window.room = backend.room("chat-lobby", { name: "${name}" })
            window.heard = []
            room.subscribe(null, ({ payload }) => heard.push(payload))
        }`)
    }
    await one.until(`room.peers.getSnapshot()[0].data.name === "Grace"`)
    await other.until(`room.peers.getSnapshot()[0].data.name === "Ada"`)
    await other.evaluate(`room.set({ name: "Grace", cursor: { x: 1, y: 2 } })`)
    await one.until(`room.peers.getSnapshot()[0].data.cursor?.y === 2`)
    await one.evaluate(`room.publish("wave", 1)`)
    await other.until(`heard.length === 1`)
    await other.evaluate(`room.leave()`)
    await one.until(`room.peers.getSnapshot().length === 0`)
    assert.deepEqual(one.thrown, [])
})

test("a frozen tab has no connection and no open database, and is live at once when it is resumed", async () => {
    const one = await page()
    await one.evaluate(`backend.auth.signInAsGuest()`)
    const other = await page(one)
    const phase = `backend.client.status.getSnapshot().phase`
    await Promise.all([one, other].map((each) => each.until(`backend.auth.getSnapshot().phase === "signedIn" && ${phase} === "live"`)))
    await one.evaluate(`notes.create({ id: "frozen-1", text: "1" })`)
    await one.evaluate(`{
        window.phases = []
        backend.client.status.subscribe(() => phases.push(${phase}))
        addEventListener("freeze", () => phases.push("frozen"), true)
    }; 0`)
    // Chromium freezes only hidden pages.
    await one.send("Emulation.setFocusEmulationEnabled", { enabled: false })
    await other.send("Page.bringToFront")
    await one.until(`document.visibilityState === "hidden"`)
    await one.send("Page.setWebLifecycleState", { state: "frozen" })
    const deleted = `new Promise((resolve) => {
        const request = indexedDB.deleteDatabase("trebuchet:" + location.origin + "/")
        request.onsuccess = () => resolve("deleted")
        request.onblocked = () => resolve("blocked")
    })`
    assert.equal(await other.evaluate(deleted), "deleted")
    await other.evaluate(`notes.create({ id: "frozen-2", text: "2" })`)
    await one.send("Page.setWebLifecycleState", { state: "active" })
    await one.until(`JSON.stringify(phases) === '["stale","frozen","live"]'`)
    await one.evaluate(`notes.create({ id: "frozen-3", text: "3" })`)
    await other.until(`window.shown?.includes("3")`)
    assert.deepEqual([...one.thrown, ...other.thrown], [])
    await Promise.all([one, other].map((each) => each.close()))
})
