// The files that trebuchet-services.js loads when it needs them, where they are not to be had at first.
import assert from "node:assert/strict"
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import { adopt } from "../.build/services/trebuchet-offline.js"
import { exact } from "../dist/trebuchet-exact.js"
import { Value } from "../dist/trebuchet.js"
import { until } from "./daemon.mjs"
import { MemoryPending } from "./services-fakes.mjs"
import { withDaemon } from "./services-world.mjs"
import { WebSocket } from "./sockets.mjs"

/** The client in a folder of its own, with trebuchet.js and trebuchet-services.js alone, and what puts another file there. */
async function withFolder(body) {
    const folder = await mkdtemp(join(tmpdir(), "services-loaded-"))
    const bring = (name) => copyFile(new URL("../dist/" + name, import.meta.url), join(folder, name))
    try {
        await writeFile(join(folder, "package.json"), '{ "type": "module" }')
        await bring("trebuchet.js")
        await bring("trebuchet-services.js")
        await body(await import(join(folder, "trebuchet-services.js")), bring)
    } finally {
        await rm(folder, { recursive: true })
    }
}

withDaemon("a room whose file cannot be loaded says so, and is joined and left once it can be", (make, daemon) =>
    withFolder(async ({ services }, bring) => {
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
            await bring("trebuchet-rooms.js")
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

withDaemon("a write is kept before the file that sends it can be loaded, and is sent once it can be", (make, daemon) =>
    withFolder(async ({ services }, bring) => {
        const kept = new MemoryPending()
        const app = services(daemon.url, { WebSocket, initialDelay: 5, maximumDelay: 100, pending: kept })
        try {
            await until(app.client.status, ({ phase }) => phase === "live")
            const done = app.collection("todos").create({ id: "a" })
            await kept.until(() => kept.writes.size === 1)
            await bring("trebuchet-writes.js")
            await done
            await kept.until(() => kept.writes.size === 0)
        } finally {
            app.close()
        }
    })
)

test("what should be kept by a file that cannot be loaded is refused, and kept once it can be", () =>
    withFolder(async ({ pendingStore }, bring) => {
        const request = (result) => {
            const made = { result }
            queueMicrotask(() => made.onsuccess())
            return made
        }
        const table = { getAll: () => request(["kept"]) }
        const store = pendingStore("app", { open: () => request({ transaction: () => ({ objectStore: () => table }) }) }, {})
        await assert.rejects(store.all(), /trebuchet-offline\.js/)
        await bring("trebuchet-offline.js")
        assert.deepEqual(await store.all(), ["kept"])
    })
)

test("what a tab that is gone has left is taken over in its order, once, and of nobody who is there", async () => {
    const shared = new MemoryPending()
    const mine = shared.tab()
    await shared.tab().claim("there")
    for (const [secret, number, account = "ada"] of [["gone", 2], ["there", 1], ["gone", 1], ["mine", 1], ["his", 1, "bob"]]) {
        await mine.add({ secret, number, account, collection: "todos", commands: [], time: 1 })
    }
    const taken = []
    const backend = {
        _account: "ada",
        _mine: new Set(["mine"]),
        collection: (name) => ({ _adopt: (account, writes) => taken.push([name, account, writes.map(({ secret, number, wasSent }) => [secret, number, wasSent])]) }),
    }
    await adopt(backend, mine)
    await adopt(backend, mine)
    assert.deepEqual(taken, [["todos", "ada", [["gone", 1, true], ["gone", 2, true]]]])
    assert.deepEqual([...backend._mine], ["mine", "gone"])
    // Another user's are left to who is signed in as him.
    assert.equal(await shared.tab().claim("his"), true)
})

test("what could not be read once is taken over with the next look", async () => {
    const mine = new MemoryPending().tab()
    const numbers = exact.parse("[12345678901234567890]")
    await mine.add({ secret: "gone", number: 1, account: "", collection: "todos", commands: [], json: exact.stringify(numbers), time: 1 })
    const taken = []
    const backend = { _account: "ada", _json: exact, _mine: new Set(), collection: () => ({ _adopt: (account, [{ commands }]) => taken.push(commands) }) }
    const { all } = mine
    let looks = 0
    mine.all = () => (++looks === 2 ? Promise.reject(new Error("InvalidStateError")) : all.call(mine))
    await assert.rejects(adopt(backend, mine), /InvalidStateError/)
    await adopt(backend, mine)
    assert.deepEqual(taken, [numbers])
})

test("a value has no members besides those that all know: in the services' bundle, where it is extended, others have short names too", () => {
    assert.deepEqual(Object.keys(new Value(1)).sort(), ["getSnapshot", "set", "subscribe"])
    assert.deepEqual(Object.getOwnPropertyNames(Value.prototype), ["constructor"])
})
