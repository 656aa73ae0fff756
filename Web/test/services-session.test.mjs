// A session alone: tabs that share it, and a storage that is full. The server is the test.
import assert from "node:assert/strict"
import { test } from "node:test"
import { Session } from "../.build/services/auth.js"
import { MemoryLocks, MemoryStorage, withPage } from "./services-fakes.mjs"

/** A server that issues tokens, each for one renewal; its responses to renewals wait for `open()`. */
class Server {
    last = 0
    good = new Map()
    gate = Promise.resolve()
    asked = 0
    ended = []
    reconnects = 0

    close() {
        this.gate = new Promise((resolve) => (this.open = resolve))
    }
    grant(id) {
        const token = "token" + ++this.last
        this.good.set(token, id)
        return { user: { id }, refreshToken: token, accessToken: "access" + this.last, accessSeconds: 600 }
    }
    async call(target, [token]) {
        if (target.startsWith("signIn(")) return this.grant(token)
        if (target === "signOut(_:)") {
            this.ended.push(this.good.get(token))
            return void this.good.delete(token)
        }
        assert.equal(target, "refresh(_:)")
        this.asked++
        const id = this.good.get(token)
        this.good.delete(token)
        if (!id) throw Object.assign(new Error(), { code: "application", data: { sessionEnded: { _0: "reused" } } })
        const grant = this.grant(id)
        await this.gate
        return grant
    }
    tab(storage) {
        const client = { actor: () => ({ call: (...args) => this.call(...args) }), status: { getSnapshot: () => ({}) }, reconnect: () => void this.reconnects++ }
        const owner = { client, _anonymous: () => client, _leave() {}, _sent: async () => {}, _accountChanged() {} }
        return new Session(owner, { storage }, "key")
    }
}

const turns = () => new Promise(setImmediate)
const userIn = (storage) => JSON.parse(storage.getItem("key") ?? "{}").user?.id
const nameOf = (session) => session.getSnapshot().user?.id

async function withLocks(locks, body) {
    const before = Object.getOwnPropertyDescriptor(globalThis, "navigator")
    Object.defineProperty(globalThis, "navigator", { value: { locks }, configurable: true })
    try {
        await body()
    } finally {
        if (before) Object.defineProperty(globalThis, "navigator", before)
        else delete globalThis.navigator
    }
}

for (const locks of [undefined, new MemoryLocks()]) {
    const how = locks ? "with locks" : "without locks"
    test(`a renewal does not replace the session of a user that has signed in meanwhile in another tab, ${how}`, () =>
        withLocks(locks, async () => {
            const [server, storage] = [new Server(), new MemoryStorage()]
            const [one, other] = [server.tab(storage), server.tab(storage)]
            await one.signInWithToken("x")
            server.close()
            const renewed = one.refresh()
            await turns()
            const signedIn = other.signInWithToken("y")
            await turns()
            server.open()
            await Promise.all([renewed, signedIn])
            assert.equal(userIn(storage), "y")
            assert.equal(nameOf(other), "y")
            await one.refresh()
            assert.equal(nameOf(one), "y")
            assert.equal(userIn(storage), "y")
        }))

    test(`a renewal does not sign in a user that has signed out meanwhile in another tab, ${how}`, () =>
        withLocks(locks, async () => {
            const [server, storage] = [new Server(), new MemoryStorage()]
            await server.tab(storage).signInWithToken("x")
            const [one, other] = [server.tab(storage), server.tab(storage)]
            server.close()
            const renewed = one.refresh()
            await turns()
            const signedOut = other.signOut()
            await turns()
            server.open()
            await Promise.all([renewed, signedOut])
            assert.equal(userIn(storage), undefined)
            assert.equal(other.getSnapshot().phase, "signedOut")
            await one.refresh()
            assert.equal(one.getSnapshot().phase, "signedOut")
        }))
}

test("a sign-out does not end the session of a user that has signed in meanwhile in another tab", async () => {
    const [server, storage] = [new Server(), new MemoryStorage()]
    const [one, other] = [server.tab(storage), server.tab(storage)]
    await one.signInWithToken("x")
    const signedOut = one.signOut()
    await other.signInWithToken("y")
    await signedOut
    assert.equal(userIn(storage), "y")
    assert.equal(await one._token(), "access3")
    assert.equal(nameOf(one), "y")
})

/** Calls `body` with a storage that fails while it is full, and the reported uncaught errors. */
async function withFull(body) {
    const [storage, told, before] = [new MemoryStorage(), [], globalThis.reportError]
    globalThis.reportError = (error) => told.push(error.message)
    const set = storage.setItem
    storage.setItem = (...args) => {
        if (storage.isFull) throw new Error("QuotaExceededError")
        set.apply(storage, args)
    }
    try {
        await body(storage, told)
    } finally {
        globalThis.reportError = before
    }
}

test("a session that the storage refuses continues, and is stored once it can be", () =>
    withFull(async (storage, told) => {
        const server = new Server()
        const tab = server.tab(storage)
        await tab.signInWithToken("x")
        storage.isFull = true
        await tab.refresh()
        await tab.refresh()
        assert.deepEqual(tab.getSnapshot(), { phase: "signedIn", user: { id: "x" } })
        assert.equal(JSON.parse(storage.getItem("key")).token, "token1")
        assert.deepEqual(told, ["QuotaExceededError", "QuotaExceededError"])
        storage.isFull = false
        tab._keepAgain()
        assert.equal(JSON.parse(storage.getItem("key")).token, "token3")
        await server.tab(storage).refresh()
        assert.equal(userIn(storage), "x")
    }))

test("a session that another tab has stored meanwhile replaces one that could not be stored", () =>
    withFull(async (storage) => {
        const server = new Server()
        const [one, other] = [server.tab(storage), server.tab(storage)]
        await one.signInWithToken("x")
        storage.isFull = true
        await one.refresh()
        storage.isFull = false
        await other.signInWithToken("y")
        one._keepAgain()
        assert.equal(userIn(storage), "y")
        await one.refresh()
        assert.equal(nameOf(one), "y")
    }))

test("a sign-in that the storage refuses is valid until the sign-out", () =>
    withFull(async (storage) => {
        const tab = new Server().tab(storage)
        storage.isFull = true
        await tab.signInWithToken("x")
        assert.equal((await tab.refresh()).id, "x")
        await tab.signOut()
        assert.equal(tab.getSnapshot().phase, "signedOut")
        tab._keepAgain()
        assert.equal(storage.all.size, 0)
    }))

test("a tab follows the sign-in of another tab, from the next connection on", async () => {
    const [server, storage] = [new Server(), new MemoryStorage()]
    const [one, other] = [server.tab(storage), server.tab(storage)]
    await one.signInWithToken("x")
    await other.signInWithToken("y")
    const before = server.reconnects
    one._look({ key: "another" })
    assert.equal(server.reconnects, before)
    one._look({ key: "key" })
    assert.equal(server.reconnects, before + 1)
    await one._token()
    assert.equal(nameOf(one), "y")
    assert.equal(userIn(storage), "y")
    // The storage is cleared: no key.
    storage.all.clear()
    one._look({ key: null })
    assert.equal(await one._token(), undefined)
    assert.equal(nameOf(one), undefined)
})

test("a sign-out in a tab with another user than the storage does not end the stored session", async () => {
    const [server, storage] = [new Server(), new MemoryStorage()]
    const [one, other] = [server.tab(storage), server.tab(storage)]
    await one.signInWithToken("x")
    await other.signInWithToken("y")
    await one.signOut()
    assert.deepEqual(server.ended, [])
    assert.equal(userIn(storage), "y")
    await one._token()
    assert.equal(nameOf(one), "y")
})

test("a storage that cannot be read stores nothing, and ends nothing", () =>
    withFull(async (storage) => {
        storage.isFull = true
        storage.getItem = () => {
            throw new Error("SecurityError")
        }
        const tab = new Server().tab(storage)
        assert.equal(tab.getSnapshot().phase, "signedOut")
        await tab.signInWithToken("x")
        assert.equal((await tab.refresh()).id, "x")
    }))

test("two concurrent requests for a token get the same one", async () => {
    const server = new Server()
    const tab = server.tab(new MemoryStorage())
    await tab.signInWithToken("x")
    assert.deepEqual(await Promise.all([tab._token(), tab._token()]), ["access1", "access1"])
    assert.equal(server.asked, 0)
})

test("invalid data in the storage is not a session", async () => {
    for (const text of ["{not json", "{}", "null", "5", '{"token":5,"user":{"id":"x"}}', '{"token":"x","user":{}}', '{"token":"x"}']) {
        const [server, storage] = [new Server(), new MemoryStorage()]
        storage.setItem("key", text)
        const tab = server.tab(storage)
        assert.equal(tab.getSnapshot().phase, "signedOut")
        tab._look({ key: "key" })
        assert.equal(await tab._token(), undefined)
        await tab.signInWithToken("x")
        assert.equal(userIn(storage), "x")
    }
})

test("a sign-out after the app has cleared the storage ends the session", async () => {
    const [server, storage] = [new Server(), new MemoryStorage()]
    const tab = server.tab(storage)
    await tab.signInWithToken("x")
    storage.all.clear()
    await tab.signOut()
    assert.equal(tab.getSnapshot().phase, "signedOut")
    assert.deepEqual(server.ended, ["x"])
    // Also a session from before a reload.
    await server.tab(storage).signInWithToken("y")
    const next = server.tab(storage)
    storage.all.clear()
    await next.signOut()
    assert.equal(next.getSnapshot().phase, "signedOut")
    assert.deepEqual(server.ended, ["x", "y"])
})

test("after a sign-out that the storage does not record, the user is not signed in again", () =>
    withFull(async (storage) => {
        const [server, { removeItem }] = [new Server(), storage]
        const tab = server.tab(storage)
        await tab.signInWithToken("x")
        storage.removeItem = () => {
            throw new Error("SecurityError")
        }
        await tab.signOut()
        assert.equal(await tab._token(), undefined)
        assert.equal(tab.getSnapshot().phase, "signedOut")
        storage.removeItem = removeItem
        tab._keepAgain()
        assert.equal(storage.all.size, 0)
    }))

/** Lets time pass for timers of the session, as fast as they are set. */
function withFastTimers(body) {
    const before = globalThis.setTimeout
    const waits = []
    globalThis.setTimeout = (action, milliseconds, ...rest) => {
        waits.push(milliseconds)
        return before(action, milliseconds > 1000 ? 1 : milliseconds, ...rest)
    }
    return body(waits).finally(() => (globalThis.setTimeout = before))
}

test("a suspended tab with the session's lock does not block other tabs, and ends nothing when it resumes", () =>
    withLocks(new MemoryLocks(), () =>
        withFastTimers(async (waits) => {
            const [server, storage] = [new Server(), new MemoryStorage()]
            await server.tab(storage).signInWithToken("x")
            const [frozen, other] = [server.tab(storage), server.tab(storage)]
            // Its renewal has no response while the tab is suspended.
            server.close()
            const renewed = frozen.refresh()
            await turns()
            const { open } = server
            server.gate = Promise.resolve()
            assert.equal((await other.signInWithToken("y")).id, "y")
            assert.ok(waits.some((each) => each >= 15_000 && each < 20_000), "it waits longer than a renewal takes")
            assert.equal((await other.refresh()).id, "y")
            const newest = JSON.parse(storage.getItem("key")).token
            open()
            // It detects the new session, and uses it.
            assert.equal((await renewed).id, "y")
            assert.ok(!server.good.has(newest), "it has renewed the newest one")
            assert.equal(server.good.get(JSON.parse(storage.getItem("key")).token), "y")
            assert.equal(nameOf(frozen), "y")
            assert.equal((await other.refresh()).id, "y")
        })
    ))

test("a page that is being suspended releases the session's lock first", () =>
    withPage((tell) =>
        withLocks(new MemoryLocks(), async () => {
            for (const [type, more] of [["freeze"], ["pagehide", { persisted: true }]]) {
                const [server, storage] = [new Server(), new MemoryStorage()]
                await server.tab(storage).signInWithToken("x")
                const [frozen, other] = [server.tab(storage), server.tab(storage)]
                server.close()
                const renewed = frozen.refresh()
                await turns()
                const { open } = server
                server.gate = Promise.resolve()
                tell("pagehide", { persisted: false })
                const signedIn = other.signInWithToken("y")
                await turns()
                assert.equal(userIn(storage), "x", "it waits: that page ends, and gives all back by itself")
                tell(type, more)
                assert.equal((await signedIn).id, "y")
                open()
                assert.equal((await renewed).id, "y")
                for (const each of [frozen, other]) each._close()
            }
        })
    ))

test("a resumed page uses the session of another tab's sign-in, of which it received no event", () =>
    withPage(async (tell) => {
        for (const type of ["pageshow", "resume"]) {
            const [server, storage] = [new Server(), new MemoryStorage()]
            const [one, other] = [server.tab(storage), server.tab(storage)]
            await one.signInWithToken("x")
            await other.signInWithToken("y")
            const before = server.reconnects
            tell(type)
            assert.equal(server.reconnects, before + 1)
            await one._token()
            assert.equal(nameOf(one), "y")
            for (const each of [one, other]) each._close()
            tell(type)
            assert.equal(server.reconnects, before + 1)
        }
    }))

test("where locks are refused a session is stored nevertheless", () =>
    withLocks({ request: () => Promise.reject(new DOMException("no", "SecurityError")) }, async () => {
        const tab = new Server().tab(new MemoryStorage())
        assert.equal((await tab.signInWithToken("x")).id, "x")
        assert.equal((await tab.refresh()).id, "x")
    }))
