// Persisted writes, with the used parts of IndexedDB and Web Locks in memory.
import assert from "node:assert/strict"
import { test } from "node:test"
import { openStore } from "../.build/services/trebuchet-offline.js"
import { pendingStore } from "../dist/trebuchet-services.js"
import { withPage } from "./services-fakes.mjs"

const later = (request, name, result) => {
    queueMicrotask(() => {
        request.result = result
        request[name]?.()
    })
    return request
}

class FakeDatabase {
    tables = new Map()
    isFull = false
    /** The open databases. */
    connections = new Set()

    open() {
        const request = {}
        const isNew = !this.tables.size
        const connection = {
            createObjectStore: (name, { keyPath }) => this.tables.set(name, { keyPath, rows: new Map() }),
            transaction: (name) => {
                if (!this.connections.has(connection)) throw new DOMException("it is closed", "InvalidStateError")
                return this.begin(this.tables.get(name))
            },
            close: () => this.connections.delete(connection),
        }
        request.result = connection
        this.connections.add(connection)
        queueMicrotask(() => {
            if (isNew) request.onupgradeneeded()
            request.onsuccess()
        })
        return request
    }

    begin({ keyPath, rows }) {
        const transaction = { objectStore: () => table }
        const changes = []
        const table = {
            put: (row) => changes.push(() => rows.set(JSON.stringify(keyPath.map((each) => row[each])), structuredClone(row))),
            delete: (key) => changes.push(() => rows.delete(JSON.stringify(key))),
            getAll: () => later({}, "onsuccess", [...rows.values()]),
        }
        setImmediate(() => {
            if (this.isFull) {
                transaction.error = new Error("QuotaExceededError")
                return transaction.onabort?.()
            }
            for (const change of changes) change()
            transaction.oncomplete?.()
        })
        return transaction
    }
}

class FakeLocks {
    held = new Set()
    async request(name, { ifAvailable }, action) {
        assert.ok(ifAvailable)
        if (this.held.has(name)) return action(null)
        this.held.add(name)
        await null
        await action({ name })
        this.held.delete(name)
    }
}

const write = (secret, number) => ({ secret, number, collection: "todos", account: "ada", commands: [], time: 1 })

test("writes are stored until they are removed, and a failed write is reported", async () => {
    const database = new FakeDatabase()
    const store = pendingStore("app", database, new FakeLocks())
    await Promise.all([store.add(write("a", 1)), store.add(write("a", 2)), store.add(write("b", 1))])
    await store.remove([{ secret: "a", number: 1 }, { secret: "c", number: 1 }])
    assert.deepEqual(await store.all(), [write("a", 2), write("b", 1)])
    database.isFull = true
    await assert.rejects(store.add(write("b", 2)), /Quota/)
    store.close()
    await null
    assert.deepEqual(await pendingStore("app", database, new FakeLocks()).all(), [write("a", 2), write("b", 1)])
})

test("a secret belongs to one tab until that tab is closed", async () => {
    const [database, locks] = [new FakeDatabase(), new FakeLocks()]
    const [one, other] = [pendingStore("app", database, locks), pendingStore("app", database, locks)]
    assert.deepEqual(await Promise.all([one.claim("a"), other.claim("a"), other.claim("b")]), [true, false, true])
    assert.equal(await one.claim("b"), false)
    one.close()
    await new Promise(setImmediate)
    assert.equal(await other.claim("a"), true)
})

test("without IndexedDB and Web Locks nothing is persisted", () => {
    assert.equal(pendingStore("app", undefined, new FakeLocks()), undefined)
    assert.equal(pendingStore("app", new FakeDatabase(), undefined), undefined)
})

test("a lock that is granted after the end is released", async () => {
    const [database, locks] = [new FakeDatabase(), new FakeLocks()]
    const first = pendingStore("app", database, locks)
    const late = first.claim("s1")
    first.close()
    assert.equal(await late, false)
    await new Promise(setImmediate)
    assert.equal(await pendingStore("app", database, locks).claim("s1"), true)
})

test("a database that could not be opened, or was closed by the browser, is opened again", async () => {
    const database = new FakeDatabase()
    const { open } = FakeDatabase.prototype
    let [tries, opened] = [0, undefined]
    database.open = function () {
        tries++
        if (tries > 1) return (opened = open.call(this))
        const request = { error: new Error("backing store") }
        queueMicrotask(() => request.onerror())
        return request
    }
    const store = pendingStore("app", database, new FakeLocks())
    const write = { secret: "s", number: 1, commands: [], time: 0, account: "", collection: "todos" }
    await assert.rejects(store.add(write), /backing store/)
    await store.add(write)
    assert.equal(tries, 2)
    opened.result.onclose()
    assert.equal((await store.all()).length, 1)
    assert.equal(tries, 3)
})

test("a database that closed without an event is opened again", async () => {
    const database = new FakeDatabase()
    const store = pendingStore("app", database, new FakeLocks())
    await store.add(write("a", 1))
    database.connections.clear()
    assert.deepEqual(await store.all(), [write("a", 1)])
})

test("a write during the end of the store is persisted, and leaves no open database", async () => {
    const database = new FakeDatabase()
    const store = pendingStore("app", database, new FakeLocks())
    await store.all()
    store.close()
    await store.add(write("a", 1))
    await null
    assert.equal(database.connections.size, 0)
    assert.deepEqual(await pendingStore("app", database, new FakeLocks()).all(), [write("a", 1)])
})

/** As in a browser: a deletion or schema change waits until all connections are closed, and later opens wait for it. */
class VersionedDatabase extends FakeDatabase {
    version = 1
    opened = []

    open(name, version) {
        if (version < this.version) {
            const failed = { error: new DOMException("it is newer", "VersionError") }
            queueMicrotask(() => failed.onerror())
            return failed
        }
        const request = super.open(name, version)
        this.opened.push(request)
        return request
    }
    /** True when nothing blocks it. */
    change() {
        for (const { result } of this.opened) if (this.connections.has(result)) result.onversionchange?.()
        return this.connections.size === 0
    }
}

test("another tab can delete the database, or upgrade it, without waiting", async () => {
    const database = new VersionedDatabase()
    const store = pendingStore("app", database, new FakeLocks())
    await store.add(write("a", 1))
    assert.ok(database.change(), "it is closed at once")
    database.tables.clear()
    await store.add(write("a", 2))
    assert.deepEqual(await store.all(), [write("a", 2)])
    assert.ok(database.change())
    database.version = 2
    await assert.rejects(store.add(write("a", 3)), { code: "unavailable", message: "database 'app' belongs to a newer version of this app: reload the page" })
})

/** Calls `body` with timers of ten seconds or more shortened to 1 ms. */
async function withShortTimeouts(body) {
    const before = globalThis.setTimeout
    globalThis.setTimeout = (action, milliseconds, ...rest) => before(action, milliseconds >= 10_000 ? 1 : milliseconds, ...rest)
    try {
        await body()
    } finally {
        globalThis.setTimeout = before
    }
}

test("a database that another tab blocks is an error after a timeout, and is opened once it can be", () =>
    withShortTimeouts(async () => {
        const database = new FakeDatabase()
        const { open } = database
        let request
        database.open = () => (request = {})
        const store = openStore("app", database, new FakeLocks())
        const [silent, ...requests] = [store.add(write("a", 1)), request]
        await assert.rejects(silent, { code: "timeout", message: "database 'app' does not respond" })
        const blocked = store.all()
        request.onblocked()
        await assert.rejects(blocked, { code: "timeout", message: "database 'app' is open in another tab as an older version: close that tab" })
        // A late connection is closed, so that it blocks no other tab.
        let closed = 0
        for (const each of [...requests, request]) {
            each.result = { close: () => closed++ }
            each.onsuccess()
        }
        assert.equal(closed, 2)
        database.open = open
        await store.add(write("a", 1))
        assert.deepEqual(await store.all(), [write("a", 1)])
        // A transaction that never ends.
        database.begin = () => ({ objectStore: () => ({ put() {}, getAll: () => ({}) }), commit: () => {} })
        await assert.rejects(store.add(write("a", 2)), { code: "timeout" })
        await assert.rejects(store.all(), { code: "timeout" })
    }))

test("a suspended page leaves no open database and no unfinished transaction", () =>
    withPage(async (tell) => {
        const database = new FakeDatabase()
        const store = openStore("app", database, new FakeLocks())
        let committed = 0
        const begin = database.begin.bind(database)
        database.begin = (table) => Object.assign(begin(table), { commit: () => committed++ })
        for (const [type, more, open] of [["pagehide", { persisted: false }, 1], ["freeze", {}, 0], ["pagehide", { persisted: true }, 0]]) {
            const before = committed
            await store.add(write("a", 1))
            assert.equal(committed, before + 1)
            assert.equal(database.connections.size, 1)
            tell(type, more)
            await new Promise(setImmediate)
            assert.equal(database.connections.size, open)
        }
        assert.deepEqual(await store.all(), [write("a", 1)])
        store.close()
        await store.all()
        await new Promise(setImmediate)
        tell("freeze")
        assert.equal(database.connections.size, 0)
    }))
