// The files that trebuchet-services.js loads on demand, when they are not available at first.
import assert from "node:assert/strict"
import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import { build } from "../.build/services/build.js"
import { adopt } from "../.build/services/trebuchet-offline.js"
import { exact } from "../dist/trebuchet-exact.js"
import { Value } from "../dist/trebuchet.js"
import { until } from "./daemon.mjs"
import { MemoryPending } from "./services-fakes.mjs"
import { withDaemon } from "./services-daemon.mjs"
import { WebSocket } from "./sockets.mjs"

/** Calls `body` with the messages of uncaught errors. */
async function withReportedErrors(body) {
    const [reported, before] = [[], globalThis.reportError]
    globalThis.reportError = (error) => reported.push(error.message)
    try {
        await body(reported)
    } finally {
        globalThis.reportError = before
    }
}

/** Calls `body` with the client from a temporary folder with only trebuchet.js and trebuchet-services.js, and a function that copies another script there. */
async function withFolder(body) {
    const folder = await mkdtemp(join(tmpdir(), "services-loaded-"))
    const copyScript = (name) => copyFile(new URL("../dist/" + name, import.meta.url), join(folder, name))
    try {
        await writeFile(join(folder, "package.json"), '{ "type": "module" }')
        await copyScript("trebuchet.js")
        await copyScript("trebuchet-services.js")
        await body(await import(join(folder, "trebuchet-services.js")), copyScript, folder)
    } finally {
        await rm(folder, { recursive: true })
    }
}

withDaemon("a room whose file cannot be loaded reports that, and is joined and left once it can be", (make, daemon) =>
    withFolder(async ({ services }, copyScript) => {
        const app = services(daemon.url, { WebSocket, initialDelay: 5, maximumDelay: 100, pending: null })
        try {
            const events = []
            await app.auth.signInAsGuest()
            const room = app.room("chat-lobby", { v: 1 })
            room.subscribe("text", ({ payload }) => events.push(payload))
            const published = room.publish("text", "mine")
            const { error } = await until(room.status, ({ error }) => error)
            assert.equal(error.code, "unavailable")
            assert.match(error.message, /trebuchet-rooms\.js/)
            room.patch({ v: 2 })
            const other = make()
            await other.auth.signInAsGuest()
            const theirs = other.room("chat-lobby", { v: 3 })
            await copyScript("trebuchet-rooms.js")
            assert.ok((await published) > 0)
            assert.deepEqual((await until(room.peers, ([peer]) => peer)).map(({ data }) => data), [{ v: 3 }])
            await until(theirs.peers, ([peer]) => peer?.data.v === 2)
            await theirs.publish("text", "theirs")
            for (const end = Date.now() + 20_000; !events.length; await new Promise(setImmediate)) assert.ok(Date.now() < end)
            assert.deepEqual(events, ["theirs"])
            await room.leave()
            assert.equal(room.status.getSnapshot().phase, "left")
        } finally {
            app.close()
        }
    })
)

withDaemon("a write is persisted before the file that sends it can be loaded, and is sent once it can be", (make, daemon) =>
    withFolder(async ({ services }, copyScript) => {
        const kept = new MemoryPending()
        const app = services(daemon.url, { WebSocket, initialDelay: 5, maximumDelay: 100, pending: kept })
        try {
            await until(app.client.status, ({ phase }) => phase === "live")
            const done = app.collection("todos").create({ id: "a" })
            await kept.until(() => kept.writes.size === 1)
            await copyScript("trebuchet-writes.js")
            await done
            await kept.until(() => kept.writes.size === 0)
        } finally {
            app.close()
        }
    })
)

withDaemon("files whose failed import the page remembers are loaded once they are available", (make, daemon) =>
    withReportedErrors((reported) =>
        withFolder(async ({ services, pendingStore }, copyScript, folder) => {
            // A failed import fails permanently, as in many browsers.
            const names = ["trebuchet-rooms.js", "trebuchet-writes.js", "trebuchet-offline.js"]
            for (const name of names) await writeFile(join(folder, name), `throw new Error("no ${name}")`)
            const app = services(daemon.url, { WebSocket, initialDelay: 5, maximumDelay: 100, pending: null })
            try {
                await app.auth.signInAsGuest()
                await until(app.client.status, ({ phase }) => phase === "live")
                const room = app.room("chat-lobby")
                const done = app.collection("todos").create({ id: "a" })
                await until(room.status, ({ error }) => error)
                const store = pendingStore("app", { open() {} }, { request: async (name, options, hold) => hold({}) })
                await assert.rejects(store.claim("a"), /no trebuchet-offline/)
                await Promise.all(names.map(copyScript))
                await until(room.status, ({ phase }) => phase === "joined")
                await done
                assert.equal(await store.claim("a"), true)
                store.close()
                // Once for each.
                assert.deepEqual(reported.toSorted(), names.map((name) => "no " + name).toSorted())
            } finally {
                app.close()
            }
        })
    )
)

withDaemon("files of another version report that, and do nothing", (make, daemon) =>
    withReportedErrors((reported) =>
        withFolder(async ({ services }, copyScript, folder) => {
            const version = /"([0-9a-f]{8})"/.exec(await readFile(join(folder, "trebuchet-services.js"), "utf8"))[1]
            for (const name of ["trebuchet-rooms.js", "trebuchet-writes.js"]) {
                await copyScript(name)
                const text = await readFile(join(folder, name), "utf8")
                assert.equal(text.split(version).length, 2, name)
                await writeFile(join(folder, name), text.replace(version, "0".repeat(8)))
            }
            const app = services(daemon.url, { WebSocket, initialDelay: 5, maximumDelay: 100, pending: null })
            try {
                await until(app.client.status, ({ phase }) => phase === "live")
                const room = app.room("chat-lobby")
                const { error } = await until(room.status, ({ error }) => error)
                assert.match(error.message, /two versions: reload/)
                app.collection("todos").create({ id: "a" })
                for (const end = Date.now() + 20_000; reported.length < 2; await new Promise(setImmediate)) assert.ok(Date.now() < end)
                assert.match(reported[1], /two versions: reload/)
                assert.deepEqual((await app.collection("todos").get()).documents, [])
            } finally {
                app.close()
            }
        })
    )
)

test("a store is closed without the file that implements it", () =>
    withFolder(async ({ pendingStore }) => {
        assert.equal(pendingStore("app", {}, {}).close(), undefined)
    })
)

test("a write is refused while the file that persists it cannot be loaded, and persisted once it can be", () =>
    withFolder(async ({ pendingStore }, copyScript) => {
        const request = (result) => {
            const made = { result }
            queueMicrotask(() => made.onsuccess())
            return made
        }
        const table = { getAll: () => request(["kept"]) }
        const store = pendingStore("app", { open: () => request({ transaction: () => ({ objectStore: () => table }) }) }, {})
        await assert.rejects(store.all(), /trebuchet-offline\.js/)
        await copyScript("trebuchet-offline.js")
        assert.deepEqual(await store.all(), ["kept"])
    })
)

test("pending writes of a closed tab are adopted in order, once, and never from a live tab", async () => {
    const shared = new MemoryPending()
    const mine = shared.tab()
    await shared.tab().claim("there")
    for (const [secret, number, account = "ada"] of [["gone", 2], ["there", 1], ["gone", 1], ["mine", 1], ["his", 1, "bob"]]) {
        await mine.add({ secret, number, account, collection: "todos", commands: [], time: 1 })
    }
    const taken = []
    const backend = {
        build,
        _account: "ada",
        _mine: new Set(["mine"]),
        collection: (name) => ({ _adopt: (account, writes) => taken.push([name, account, writes.map(({ secret, number, wasSent }) => [secret, number, wasSent])]) }),
    }
    await adopt(backend, mine)
    await adopt(backend, mine)
    assert.deepEqual(taken, [["todos", "ada", [["gone", 1, true], ["gone", 2, true]]]])
    assert.deepEqual([...backend._mine], ["mine", "gone"])
    // Writes of another user wait for that user's sign-in.
    assert.equal(await shared.tab().claim("his"), true)
})

test("pending writes that could not be read are adopted at the next attempt", async () => {
    const mine = new MemoryPending().tab()
    const numbers = exact.parse("[12345678901234567890]")
    await mine.add({ secret: "gone", number: 1, account: "", collection: "todos", commands: [], json: exact.stringify(numbers), time: 1 })
    const taken = []
    const backend = { build, _account: "ada", _json: exact, _mine: new Set(), collection: () => ({ _adopt: (account, [{ commands }]) => taken.push(commands) }) }
    const { all } = mine
    let looks = 0
    mine.all = () => (++looks === 2 ? Promise.reject(new Error("InvalidStateError")) : all.call(mine))
    await assert.rejects(adopt(backend, mine), /InvalidStateError/)
    await adopt(backend, mine)
    assert.deepEqual(taken, [numbers])
})

test("a value has only members known to all bundles: the services' bundle, which extends it, has other short names", () => {
    assert.deepEqual(Object.keys(new Value(1)).sort(), ["getServerSnapshot", "getSnapshot", "set", "subscribe"])
    assert.deepEqual(Object.getOwnPropertyNames(Value.prototype), ["constructor"])
})
