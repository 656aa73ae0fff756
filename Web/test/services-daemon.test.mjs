// Tests of the services with the program at TREBUCHET_TOOL.
import assert from "node:assert/strict"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import { services } from "../dist/trebuchet-services.js"
import { Daemon, until } from "./daemon.mjs"
import { MemoryPending, MemoryStorage } from "./services-fakes.mjs"
import { limits, live, withDaemon } from "./services-daemon.mjs"
import { WebSocket } from "./sockets.mjs"

const reasonOf = (promise) => promise.then(() => "done", (error) => (error.data ? Object.keys(error.data)[0] : error.code))

/** Reads a code from the output of the daemon. */
async function codeFor(daemon, address) {
    for (;;) {
        const found = [...daemon.output.matchAll(new RegExp(`${address}[^]*?\\b(\\d{6})\\b`, "g"))].at(-1)
        if (found) return found[1]
        await new Promise((resolve) => daemon.process.stderr.once("data", resolve))
    }
}

withDaemon("a guest keeps its identity over a reload, lists sessions, gets an address, and signs out", async (make, daemon) => {
    const storage = new MemoryStorage()
    const first = make({ storage })
    assert.equal(first.auth.getSnapshot().phase, "signedOut")
    const guest = await first.auth.signInAsGuest()
    assert.equal(guest.isGuest, true)
    assert.deepEqual(first.auth.getSnapshot(), { phase: "signedIn", user: guest })
    await live(first)
    first.close()

    const second = make({ storage })
    assert.deepEqual(second.auth.getSnapshot(), { phase: "loading", user: guest })
    await until(second.auth, ({ phase }) => phase === "signedIn")
    await live(second)
    await second.client.actor("auth").call("labelSession(_:)", ["desk"])
    assert.deepEqual((await second.auth.sessions()).map(({ label, isCurrent }) => [label, isCurrent]), [["desk", true]])
    assert.equal(await second.auth.endOtherSessions(), 0)
    assert.equal(await reasonOf(second.auth.endSession("none")), "noSuchSession")

    assert.deepEqual(await second.auth.sendCode("ada@example.org"), { validSeconds: 600 })
    assert.equal(await reasonOf(second.auth.verifyCode("ada@example.org", "000000")), "wrongCode")
    const user = await second.auth.verifyCode("ada@example.org", await codeFor(daemon, "ada@example.org"))
    assert.deepEqual(user, { id: guest.id, email: "ada@example.org", isGuest: false })
    assert.equal(await reasonOf(second.auth.signInWithToken("e.e.e", "nobody")), "unknownProvider")
    await live(second)
    const before = storage.all.size
    await second.auth.signOut()
    assert.equal(second.auth.getSnapshot().phase, "signedOut")
    assert.deepEqual([before, storage.all.size], [1, 0])
    await live(second)
    assert.equal(await reasonOf(second.auth.sessions()), "notSignedIn")
})

withDaemon("a client that is signed out by another one is notified, and continues anonymously", async (make, daemon) => {
    const [one, other] = [make(), make()]
    for (const each of [one, other]) {
        daemon.output = ""
        await each.auth.sendCode("ada@example.org")
        await each.auth.verifyCode("ada@example.org", await codeFor(daemon, "ada@example.org"))
        await live(each)
    }
    assert.equal(one.auth.getSnapshot().user.id, other.auth.getSnapshot().user.id)
    const sessions = await other.auth.sessions()
    await other.auth.endSession(sessions.find(({ isCurrent }) => !isCurrent).id)
    await until(one.auth, ({ phase }) => phase === "signedOut")
    assert.equal(one.auth.getSnapshot().ended, "elsewhere")
    await live(one)
    assert.equal(other.auth.getSnapshot().phase, "signedIn")
})

withDaemon("two members of a room see each other, and receive each event once and in order", async (make, daemon) => {
    const [ada, bob] = [make(), make()]
    const mine = ada.room("chat-lobby", { name: "Ada", at: { x: 1, y: 1 } })
    const theirs = bob.room("chat-lobby", { name: "Bob" })
    assert.equal(ada.room("chat-lobby"), mine)
    await until(mine.peers, (peers) => peers[0]?.data.name === "Bob")
    await until(theirs.peers, (peers) => peers[0]?.data.at?.x === 1)
    const before = theirs.peers.getSnapshot()
    mine.patch({ at: { x: 2 }, typing: true })
    await until(theirs.peers, (peers) => peers[0].data.typing)
    assert.deepEqual(theirs.peers.getSnapshot()[0].data, { name: "Ada", at: { x: 2, y: 1 }, typing: true })
    assert.notEqual(theirs.peers.getSnapshot(), before)
    mine.set({ name: "Ada" })
    await until(theirs.peers, (peers) => !peers[0].data.typing)
    assert.deepEqual(theirs.peers.getSnapshot()[0].data, { name: "Ada" })

    const seen = []
    let done
    const all = new Promise((resolve) => (done = resolve))
    theirs.subscribe(null, ({ topic, payload }) => {
        seen.push([topic, payload])
        if (payload === 39) done()
    })
    const emojis = []
    theirs.subscribe("emoji", ({ payload }) => emojis.push(payload))
    await until(theirs.status, ({ phase }) => phase === "joined")
    const numbers = Promise.all(Array.from({ length: 40 }, (_, index) => mine.publish(index % 2 ? "emoji" : "text", index)))
    await all
    assert.deepEqual(seen.map(([, payload]) => payload), Array.from({ length: 40 }, (_, index) => index))
    assert.deepEqual(emojis.length, 20)
    assert.deepEqual(await numbers, Array.from({ length: 40 }, (_, index) => index + 1))
    assert.equal((await theirs.history("text", null, 3)).length, 3)
    assert.equal(theirs.status.getSnapshot().missed, 0)
    await mine.leave()
    await until(theirs.peers, (peers) => peers.length === 0)
    assert.equal(mine.status.getSnapshot().phase, "left")
    assert.equal(await reasonOf(mine.publish("text", 1)), "cancelled")
})

/** Waits in turns until the condition holds; a separate loop would outlive the test and keep the process running. */
async function eventually(condition) {
    const end = Date.now() + 30_000
    while (!condition()) {
        assert.ok(Date.now() < end, `not within 30 s: ${condition}`)
        await new Promise(setImmediate)
    }
}

withDaemon("a member that was disconnected for a moment receives missed events, and stays visible to others", async (make) => {
    const [ada, bob] = [make(), make()]
    const mine = ada.room("chat-lobby", { name: "Ada" })
    const theirs = bob.room("chat-lobby", { name: "Bob" })
    const seen = []
    theirs.subscribe("text", ({ payload }) => seen.push(payload))
    await until(mine.peers, (peers) => peers.length === 1)
    const [peer] = mine.peers.getSnapshot()
    for (let round = 0; round < 5; round++) {
        await until(theirs.status, ({ phase }) => phase === "joined")
        bob.client.reconnect()
        for (let index = 0; index < 3; index++) await mine.publish("text", round * 3 + index)
    }
    await until(theirs.status, ({ phase }) => phase === "joined")
    await mine.publish("text", "end")
    await eventually(() => seen.at(-1) === "end")
    assert.deepEqual(seen, [...Array.from({ length: 15 }, (_, index) => index), "end"])
    assert.equal(mine.peers.getSnapshot()[0], peer)
})

withDaemon("writes are shown at once, reach other clients, and are reverted when they are refused", async (make) => {
    const refused = []
    const [ada, bob] = [make({ refused: (write) => refused.push(write) }), make()]
    await Promise.all([ada.auth.signInAsGuest(), bob.auth.signInAsGuest()])
    const [mine, theirs] = [ada.collection("todos"), bob.collection("todos")]
    const open = mine.query({ where: { done: false }, order: "title" })
    assert.equal(mine.query({ where: { done: false }, order: ["title"] }), open)
    const all = theirs.query()
    open.subscribe(() => {})
    all.subscribe(() => {})
    await until(open, (items) => items)
    await until(all, (items) => items)
    const milk = mine.create({ id: 1, title: "Milk", done: false })
    // Before any message was sent.
    assert.deepEqual(open.getSnapshot(), [{ id: 1, title: "Milk", done: false }])
    assert.equal(open.status.getSnapshot().pending, 1)
    await milk
    assert.equal(open.status.getSnapshot().pending, 0)
    const bread = mine.create({ id: "b", title: "Bread", done: false })
    const [first, second] = open.getSnapshot()
    assert.deepEqual([first.title, second.title], ["Bread", "Milk"])
    await bread
    await until(all, (items) => items.length === 2)
    assert.deepEqual(open.getSnapshot(), [first, second])
    assert.equal(open.getSnapshot()[0], first)

    const again = mine.create({ id: "b", title: "Another", done: false })
    mine.update("b", { title: "Rye" })
    assert.equal(open.getSnapshot()[1].title, "Rye")
    assert.equal(await reasonOf(again), "alreadyExists")
    assert.deepEqual(refused.map(({ collection, id, error }) => [collection, id, Object.keys(error.data)[0]]), [["todos", "b", "alreadyExists"]])
    await mine.update("b", { title: "Oats" }, { if: { title: "Rye" } })
    assert.equal(await reasonOf(mine.update("b", { title: "Wheat" }, { if: { title: "Rye" } })), "conditionFailed")
    assert.equal(open.getSnapshot()[1].title, "Oats")
    await Promise.all([mine.increment("b", "count"), mine.increment("b", "count", 2), mine.link("b", "tags", "x"), mine.link("b", "tags", "y"), mine.unlink("b", "tags", "x"), mine.merge("b", { place: { shelf: 3 } })])
    await until(all, (items) => items.find(({ id }) => id === "b")?.place)
    assert.deepEqual(all.getSnapshot()[1], { id: "b", title: "Oats", done: false, count: 3, tags: ["y"], place: { shelf: 3 } })
    assert.equal(open.document("b").fields, open.getSnapshot()[1])
    await mine.transaction((todos) => {
        todos.update(1, { done: true })
        todos.increment("b", "count")
    })
    assert.deepEqual(open.getSnapshot().map(({ count }) => count), [4])
    const failed = mine.transaction((todos) => {
        todos.update(1, { title: "never" })
        todos.check("b", { if: { count: 9 } })
    })
    assert.equal(await reasonOf(failed), "conditionFailed")
    const errorOf = (promise) => promise.then(() => undefined, (error) => error)
    assert.equal((await errorOf(failed)).index, 1)
    await mine.transaction(() => {})
    const asynchronous = mine.transaction(async (todos) => {
        todos.increment("b", "count")
        await undefined
        todos.increment("b", "count")
    })
    assert.equal((await errorOf(asynchronous)).code, "invalidArguments")
    const thrown = new Error("of the app")
    assert.equal(await errorOf(mine.transaction(() => {
        throw thrown
    })), thrown)
    assert.deepEqual(open.getSnapshot().map(({ count }) => count), [4])
    await mine.delete("b")
    await until(all, (items) => items.length === 1)
    assert.deepEqual(all.getSnapshot(), [{ id: 1, title: "Milk", done: true }])
    const page = await mine.get({ order: "-title", limit: 1, counts: true })
    assert.deepEqual([page.documents.length, page.count], [1, 1])
})

withDaemon("pages grow, and keep their items until the next page has arrived", async (make) => {
    const ada = make()
    await ada.auth.signInAsGuest()
    const rows = ada.collection("rows")
    await Promise.all(Array.from({ length: 25 }, (_, index) => rows.create({ id: index, place: index })))
    const pages = rows.pages({ order: "place", limit: 10, counts: true })
    const lengths = []
    pages.subscribe(() => lengths.push(pages.getSnapshot()?.length ?? 0))
    await until(pages, (items) => items?.length === 10)
    await until(pages.status, ({ phase }) => phase === "live")
    assert.deepEqual([pages.status.getSnapshot().hasMore, pages.status.getSnapshot().count], [true, 25])
    pages.more()
    await until(pages, (items) => items.length === 20)
    pages.more()
    await until(pages, (items) => items.length === 25)
    await until(pages.status, ({ hasMore }) => !hasMore)
    assert.ok(lengths.every((length, index) => index === 0 || length >= lengths[index - 1]), String(lengths))
    const all = []
    for (let after; ; ) {
        const page = await rows.get({ order: "place", limit: 7, after })
        all.push(...page.documents.map(({ fields }) => fields.place))
        after = page.cursor
        if (!after) break
    }
    assert.deepEqual(all, Array.from({ length: 25 }, (_, index) => index))
})

test("a killed server loses no acknowledged write, and executes none twice", limits, async () => {
    const folder = await mkdtemp(join(tmpdir(), "trebuchet-web-"))
    const data = ["--data", join(folder, "state.db")]
    let daemon = await Daemon.start(data)
    const make = () => services(daemon.url, { WebSocket, initialDelay: 5, maximumDelay: 100, pending: new MemoryPending() })
    const [ada, bob] = [make(), make()]
    try {
        const open = ada.collection("counts").query()
        open.subscribe(() => {})
        await until(open, (items) => items)
        // Documents of an anonymous client, which every client may change.
        await ada.collection("counts").create({ id: "a", count: 0, list: [] })
        await Promise.all([ada.auth.signInAsGuest(), bob.auth.signInAsGuest()])
        let acknowledged = 0
        const writes = []
        const write = (client, name, index) => {
            const each = client.collection("counts")
            for (const done of [each.increment("a", "count"), each.link("a", "list", `${name}${index}`)]) writes.push(done.then(() => acknowledged++))
        }
        for (let round = 0; round < 4; round++) {
            for (let index = 0; index < 50; index++) {
                write(ada, "ada", round * 50 + index)
                write(bob, "bob", round * 50 + index)
            }
            // While they are in transit.
            const before = acknowledged
            await eventually(() => acknowledged >= before + 40)
            await daemon.end()
            assert.ok(acknowledged < writes.length)
            daemon = await Daemon.start(data, daemon.port)
        }
        await Promise.all(writes)
        await until(open, (items) => items[0].list.length === 400)
        const [{ count, list }] = open.getSnapshot()
        assert.equal(count, 400)
        for (const name of ["ada", "bob"]) {
            assert.deepEqual(list.filter((each) => each.startsWith(name)), Array.from({ length: 200 }, (_, index) => name + index))
        }
        assert.equal(open.status.getSnapshot().pending, 0)
    } finally {
        ada.close()
        bob.close()
        await daemon.end()
        await rm(folder, { recursive: true })
    }
})

test("writes that are pending when a tab is closed are sent by the next tab, once, by their account", limits, async () => {
    const folder = await mkdtemp(join(tmpdir(), "trebuchet-web-"))
    const data = ["--data", join(folder, "state.db")]
    let daemon = await Daemon.start(data)
    const [storage, kept] = [new MemoryStorage(), new MemoryPending()]
    const make = (options) => services(daemon.url, { WebSocket, initialDelay: 5, maximumDelay: 100, storage, pending: kept.tab(), ...options })
    const clients = []
    try {
        const first = make()
        clients.push(first)
        const ada = await first.auth.signInAsGuest()
        await first.collection("votes").create({ id: "a", count: 0 })
        await daemon.end()
        await until(first.client.status, ({ phase }) => phase === "stale")
        const waiting = Array.from({ length: 100 }, () => first.collection("votes").increment("a", "count"))
        const query = first.collection("votes").query()
        query.subscribe(() => {})
        await kept.until(() => kept.writes.size === 100)
        first.close()
        assert.deepEqual([...new Set(await Promise.all(waiting.map(reasonOf)))], ["persistedForLater"])

        daemon = await Daemon.start(data, daemon.port)
        // Two tabs at once: one of them adopts the writes.
        const tabs = [make(), make()]
        clients.push(...tabs)
        const counts = tabs.map((each) => each.collection("votes").query())
        for (const each of counts) each.subscribe(() => {})
        await Promise.all(counts.map((each) => until(each, (items) => items?.[0]?.count === 100)))
        await kept.until(() => kept.writes.size === 0)
        for (const each of tabs) assert.equal(each.auth.getSnapshot().user.id, ada.id)
        assert.equal((await tabs[0].collection("votes").get()).documents[0].fields.count, 100)
    } finally {
        for (const each of clients) each.close()
        await daemon.end()
        await rm(folder, { recursive: true })
    }
})

withDaemon("writes of anonymous clients and users are sent by their accounts, also after another user has signed in", async (make) => {
    const kept = new MemoryPending()
    const ada = make({ pending: kept.tab() })
    const notes = ada.collection("notes")
    const strange = notes.create({ id: "nobody's" })
    const user = await ada.auth.signInAsGuest()
    await strange
    await notes.create({ id: "hers" })
    await ada.auth.signOut()
    const other = await ada.auth.signInAsGuest()
    await notes.create({ id: "other's" })
    const { documents } = await notes.get()
    const creators = Object.fromEntries(documents.map(({ id, creator }) => [id, creator]))
    assert.deepEqual(creators, { "nobody's": undefined, hers: user.id, "other's": other.id })
})

withDaemon("a query without observers is closed, and opened again for the next observer", async (make) => {
    const [ada, bob] = [make(), make()]
    const [mine, theirs] = [ada.collection("todos"), bob.collection("todos")]
    const query = mine.query({ order: "id" })
    for (let round = 0; round < 3; round++) {
        const end = query.subscribe(() => {})
        await until(query.status, ({ phase }) => phase === "live")
        await theirs.create({ id: round })
        await until(query, (items) => items.length === round + 1)
        end()
        await until(query.status, ({ phase }) => phase === "stale")
    }
    // More queries than a connection may have open.
    for (let round = 0; round < 60; round++) {
        const each = mine.query({ where: { id: round } })
        const end = each.subscribe(() => {})
        if (round % 2) await until(each, (items) => items)
        end()
    }
    // It is closed after a moment.
    const others = mine.query({ where: { id: "others" } })
    const end = others.subscribe(() => {})
    await until(others, (items) => items)
    end()
    await until(others.status, ({ phase }) => phase === "stale")
    const all = Array.from({ length: 60 }, (_, index) => mine.query({ where: { id: -index - 1 } }))
    for (const each of all) each.subscribe(() => {})
    for (const each of all) assert.equal((await until(each.status, ({ phase }) => phase === "live" || phase === "failed")).error, undefined)
})

withDaemon("tabs that share a session are signed out together, and renew it without ending it", async (make) => {
    const storage = new MemoryStorage()
    const first = make({ storage })
    const user = await first.auth.signInAsGuest()
    const second = make({ storage })
    await live(second)
    for (const each of [first, second, first, second]) assert.deepEqual((await each.auth.refresh()).id, user.id)
    for (const each of [first, second]) {
        each.client.reconnect()
        await live(each)
        assert.equal((await each.auth.sessions()).length, 1)
    }
    await first.auth.signOut()
    await until(second.auth, ({ phase }) => phase === "signedOut")
    await live(second)
    assert.equal(await reasonOf(second.auth.sessions()), "notSignedIn")
})

withDaemon("a refused presence does not end the membership, and the next one is shown", async (make) => {
    const [ada, bob] = [make(), make()]
    const mine = ada.room("chat-lobby", { text: "x".repeat(100_000) })
    const theirs = bob.room("chat-lobby", { name: "Bob" })
    await until(mine.status, ({ phase, error }) => phase === "joined" && error)
    assert.deepEqual(Object.keys(mine.status.getSnapshot().error.data), ["presenceTooLarge"])
    await until(mine.peers, (peers) => peers.length === 1)
    assert.deepEqual(theirs.peers.getSnapshot(), [])
    mine.set({ name: "Ada" })
    await until(theirs.peers, (peers) => peers[0]?.data.name === "Ada")
    assert.equal(mine.status.getSnapshot().error, undefined)
    for (let index = 0; index < 300; index++) mine.patch({ index })
    await until(theirs.peers, (peers) => peers[0].data.index === 299)
    // Left and joined again at once.
    const left = mine.leave()
    const again = ada.room("chat-lobby", { name: "Ada again" })
    assert.notEqual(again, mine)
    await left
    await until(theirs.peers, (peers) => peers.length === 1 && peers[0].data.name === "Ada again")
    assert.equal(await reasonOf(theirs.publish("text", "x".repeat(100_000))), "payloadTooLarge")
    assert.equal(await theirs.publish("text", "short"), 1)
})

test("an offline write of an anonymous client stays anonymous, though a user signs in and out again", limits, async () => {
    const folder = await mkdtemp(join(tmpdir(), "trebuchet-web-"))
    const data = ["--data", join(folder, "state.db")]
    let daemon = await Daemon.start(data)
    const kept = new MemoryPending()
    const storage = new MemoryStorage()
    const make = () => services(daemon.url, { WebSocket, initialDelay: 5, maximumDelay: 100, storage, pending: kept.tab() })
    let app = make()
    try {
        const user = await app.auth.signInAsGuest()
        await live(app)
        await daemon.end()
        await until(app.client.status, ({ phase }) => phase === "stale")
        app.collection("notes").create({ id: "hers" })
        await kept.until(() => kept.writes.size === 1)
        const session = storage.copy()
        app.close()
        // Before any user signed in here.
        storage.all.clear()
        app = make()
        app.collection("notes").create({ id: "nobody's" })
        await kept.until(() => kept.writes.size === 2)
        app.close()
        storage.all = session.all
        daemon = await Daemon.start(data, daemon.port)
        app = make()
        await kept.until(() => kept.writes.size === 0)
        const { documents } = await app.collection("notes").get()
        assert.deepEqual(Object.fromEntries(documents.map(({ id, creator }) => [id, creator])), { "nobody's": undefined, hers: user.id })
    } finally {
        app.close()
        await daemon.end()
        await rm(folder, { recursive: true })
    }
})

withDaemon("a write that cannot be persisted is sent over a connection, or refused without one; too many pending writes are refused", async (make) => {
    const kept = new MemoryPending()
    const ada = make({ pending: kept, pendingWrites: 2 })
    const todos = ada.collection("todos")
    const query = todos.query()
    query.subscribe(() => {})
    await until(query, (items) => items)
    const told = []
    const report = globalThis.reportError
    globalThis.reportError = ({ message }) => told.push(message)
    try {
        kept.isFull = true
        for (const id of [0, 1]) assert.equal(await reasonOf(todos.create({ id })), "done")
        assert.equal(told.length, 1)
        assert.match(told[0], /it is full/)
        for (const id of [0, 1]) await reasonOf(todos.delete(id))
        const away = services("ws://127.0.0.1:1", { WebSocket, pending: kept })
        assert.equal(await reasonOf(away.collection("todos").create({ id: 1 })), "unavailable")
        away.close()
    } finally {
        globalThis.reportError = report
    }
    kept.isFull = false
    const results = [2, 3, 4].map((id) => reasonOf(todos.create({ id })))
    assert.deepEqual(await Promise.all(results), ["done", "done", "rateLimited"])
    assert.equal(await reasonOf(todos.create({ id: 5, text: "x".repeat(300_000) })), "invalidArguments")
    assert.deepEqual(query.getSnapshot(), [{ id: 2 }, { id: 3 }])
})

withDaemon("the examples of the documentation work as described", async (make) => {
    const page = await readFile(new URL("../../Docs/Guides/Web.md", import.meta.url), "utf8")
    /** The code of a section. */
    const codeOf = (title) => {
        const section = page.slice(page.indexOf(`### ${title}\n`)).split(/\n###? /)[0]
        const lines = section.split("\n").filter((line) => line.startsWith("    "))
        assert.ok(lines.length > 5, title)
        return lines.join("\n")
    }
    const run = (title, given, result) => {
        const AsyncFunction = (async () => {}).constructor
        return new AsyncFunction(...Object.keys(given), `${codeOf(title)}\nreturn ${result}`)(...Object.values(given))
    }
    const [app, other] = [make(), make()]
    const theirs = other.room("chat-lobby", { name: "Bob" })
    const events = []
    theirs.subscribe("emoji", ({ payload }) => events.push(payload))
    await until(theirs.status, ({ phase }) => phase === "joined")
    const room = await run("Rooms and topics", { app, draw() {}, show() {} }, "room")
    assert.deepEqual(room.presence, { name: "Ada" })
    await theirs.publish("end", null)
    assert.deepEqual(events, [{ name: "tada" }])

    const todos = app.collection("todos")
    await todos.create({ id: "1", title: "Bread", done: false, priority: 3 })
    const shown = []
    const given = { app, draw: (items) => shown.push(items), id: "1" }
    const open = await run("Collections", given, "open")
    await until(open.status, ({ phase }) => phase === "live")
    const { documents } = await todos.get({ order: "title" })
    const [bread, milk] = documents.map(({ fields }) => fields)
    assert.deepEqual([bread.done, bread.votes, bread.tags], [true, 1, ["urgent"]])
    assert.deepEqual([documents.length, milk.title, milk.done], [2, "Milk", false])
    assert.deepEqual(open.getSnapshot(), [])
})

withDaemon("an error of a listener of refused writes does not affect the others", async (make) => {
    const pending = new MemoryPending()
    const errors = []
    const report = globalThis.reportError
    globalThis.reportError = (error) => errors.push(error.message)
    try {
        const app = make({ pending, refused: () => { throw new Error("of the app") } })
        const todos = app.collection("todos")
        await live(app)
        await todos.create({ id: "a" })
        const ends = await Promise.all(["a", "b", "c"].map((id) => reasonOf(todos.create({ id }))))
        assert.deepEqual(ends, ["alreadyExists", "done", "done"])
        await pending.until(() => pending.writes.size === 0)
        assert.deepEqual(errors, ["of the app"])
    } finally {
        globalThis.reportError = report
    }
})

withDaemon("results of one account are never shown to another, even without observers", async (make) => {
    const app = make()
    await app.auth.signInAsGuest()
    await app.collection("todos").create({ id: "mine" })
    const query = app.collection("todos").query({})
    const end = query.subscribe(() => {})
    await eventually(() => query.getSnapshot()?.length === 1)
    end()
    const seen = []
    app.auth.subscribe(() => seen.push(query.getSnapshot(), query.document("mine")))
    await app.auth.signOut()
    assert.deepEqual(new Set(seen), new Set([undefined]))
    assert.deepEqual([query.getSnapshot(), query.document("mine")], [undefined, undefined])
})

withDaemon("a presence that the app changes in place is shown when it is set", async (make) => {
    const [ada, bob] = [make().room("chat-a", { name: "Ada" }), make().room("chat-a", { name: "Bob" })]
    const cursor = { x: 1 }
    ada.set(cursor)
    await until(bob.peers, ([peer]) => peer?.presence?.x === 1 || peer?.data?.x === 1)
    cursor.x = 2
    ada.set(cursor)
    await until(bob.peers, ([peer]) => peer?.presence?.x === 2 || peer?.data?.x === 2)
})

withDaemon("a member that leaves during a loss of its connection disappears for the others", async (make) => {
    const bob = make().room("chat-b", { name: "Bob" })
    await until(bob.status, ({ phase }) => phase === "joined")
    const ada = make()
    await live(ada)
    const room = ada.room("chat-b", { name: "Ada" })
    ada.client.reconnect()
    const begun = Date.now()
    await room.leave()
    await until(bob.peers, (peers) => peers.length === 0)
    // Less than the reconnect time of a lost member.
    assert.ok(Date.now() - begun < 9_000)
})

withDaemon("no promise stays pending after the services are closed", async (make) => {
    const app = make()
    const room = app.room("chat-c", {})
    await until(room.status, ({ phase }) => phase === "joined")
    app.close()
    assert.equal(await reasonOf(room.publish("text", 1)), "unavailable")
    await room.leave()
    assert.equal(await reasonOf(app.room("chat-d", {}).publish("text", 1)), "unavailable")
    await app.room("chat-d").leave()
})

withDaemon("a session that the storage refuses continues in memory", async (make) => {
    const errors = []
    const report = globalThis.reportError
    globalThis.reportError = (error) => errors.push(error.message)
    try {
        const storage = new MemoryStorage()
        const app = make({ storage })
        const guest = await app.auth.signInAsGuest()
        const { setItem } = MemoryStorage.prototype
        storage.setItem = () => { throw new Error("quota") }
        assert.deepEqual(await app.auth.refresh(), guest)
        assert.deepEqual(errors, ["quota"])
        // The stored token is no longer valid.
        assert.deepEqual(await app.auth.refresh(), guest)
        storage.setItem = setItem
        assert.deepEqual(await app.auth.refresh(), guest)
        const next = make({ storage })
        assert.deepEqual(await next.auth.refresh(), guest)
    } finally {
        globalThis.reportError = report
    }
})

withDaemon("a renewal that ends after another tab has signed in does not revert the sign-in", async (make) => {
    const storage = new MemoryStorage()
    const [one, other] = [make({ storage }), make({ storage })]
    await one.auth.signInAsGuest()
    // The response of the renewal arrives after the sign-in of the other tab.
    const { setItem } = storage
    let signedIn
    const { getItem } = MemoryStorage.prototype
    let looks = 0
    storage.getItem = function (key) {
        // The first read is for the token to renew, the second checks whether it is still stored.
        if (++looks === 2) storage.setItem(key, signedIn)
        return getItem.call(this, key)
    }
    const apart = new MemoryStorage()
    const guest = await make({ storage: apart }).auth.signInAsGuest()
    signedIn = [...apart.all.values()][0]
    looks = 0
    setItem.call(storage, "unused", "")
    assert.deepEqual(await one.auth.refresh(), guest)
    delete storage.getItem
    assert.deepEqual(await other.auth.refresh(), guest)
})

test("a write that the server cannot decode is refused, and the other writes of its batch are not", limits, async () => {
    const daemon = await Daemon.start()
    const kept = new MemoryPending()
    const away = services("ws://127.0.0.1:1", { WebSocket, pending: kept.tab() })
    let app
    try {
        for (let index = 0; index < 40; index++) away.collection("notes").create({ id: "kept" + index, text: index === 17 ? "\ud83d" : "note" })
        await kept.until(() => kept.writes.size === 40)
        away.close()
        const refused = []
        app = services(daemon.url, { WebSocket, pending: kept.tab(), refused: ({ id, error }) => refused.push([id, error.code]) })
        await live(app)
        let deep = {}
        for (let depth = 0; depth < 60; depth++) deep = { deep }
        const results = Array.from({ length: 40 }, (_, index) => reasonOf(app.collection("notes").create({ id: "new" + index, text: index % 9 === 5 ? deep : "note" })))
        const bad = [5, 14, 23, 32]
        assert.deepEqual(await Promise.all(results), Array.from({ length: 40 }, (_, index) => (bad.includes(index) ? "invalidArguments" : "done")))
        await kept.until(() => kept.writes.size === 0)
        assert.equal((await app.collection("notes").get({ limit: 100 })).documents.length, 39 + 36)
        assert.deepEqual(refused.sort(), ["kept17", ...bad.map((index) => "new" + index)].sort().map((id) => [id, "invalidArguments"]))
    } finally {
        away.close()
        app?.close()
        await daemon.end()
    }
})

test("a read and an event end after the timeout of the client, without a connection", limits, async () => {
    const app = services("ws://127.0.0.1:1", { WebSocket, initialDelay: 5, maximumDelay: 100, timeout: 50, pending: null })
    try {
        const room = app.room("chat-lobby")
        const outcomes = await Promise.allSettled([app.collection("todos").get(), room.publish("text", 1)])
        assert.deepEqual(outcomes.map(({ reason }) => reason?.code), ["timeout", "timeout"])
        await room.leave()
    } finally {
        app.close()
    }
})

test("pending writes of a page before a reload stay pending and shown, also without a connection", limits, async () => {
    const [daemon, storage, kept] = [await Daemon.start(), new MemoryStorage(), new MemoryPending()]
    const made = []
    const make = (url) => {
        const app = services(url, { WebSocket, initialDelay: 5, maximumDelay: 100, storage, storageKey: "app", pending: kept.tab() })
        made.push(app)
        const query = app.collection("todos").query()
        query.subscribe(() => {})
        return { app, query }
    }
    const waits = ({ query }, count) => until(query.status, ({ pending }) => pending === count)
    try {
        const first = make(daemon.url)
        await first.app.auth.signInAsGuest()
        await first.app.collection("todos").create({ id: "a", title: "Milk" })
        await first.app.close()
        const away = make("ws://127.0.0.1:1")
        const writes = ["b", "c"].map((id) => away.app.collection("todos").create({ id, title: "Bread" }))
        writes.push(away.app.collection("todos").update("a", { title: "Oats" }))
        await kept.until(() => kept.writes.size === 3)
        away.app.close()
        for (const each of await Promise.allSettled(writes)) assert.equal(each.reason.code, "persistedForLater")
        const again = make("ws://127.0.0.1:1")
        await waits(again, 3)
        again.app.collection("todos").delete("c")
        await waits(again, 4)
        await kept.until(() => kept.writes.size === 4)
        again.app.close()
        const back = make(daemon.url)
        await until(back.query, (items) => JSON.stringify(items) === '[{"id":"a","title":"Oats"},{"id":"b","title":"Bread"}]')
        await waits(back, 0)
    } finally {
        for (const app of made) app.close()
        await daemon.end()
    }
})

withDaemon("a refused write has a message", async (make) => {
    const app = make({ pendingWrites: 10 })
    await app.auth.signInAsGuest()
    const notes = app.collection("notes")
    await notes.create({ id: "a", title: "Milk" })
    const { revision } = (await notes.get()).documents[0]
    const other = make()
    await other.auth.signInAsGuest()
    for (const [write, message] of [
        [notes.create({ title: "Milk" }), "the id is missing"],
        [notes.update(undefined, {}), "the id is missing"],
        [notes.create({ id: "a" }), "document 'a' already exists"],
        [notes.update("none", { a: 1 }), "document 'none' does not exist"],
        [notes.update("a", { a: 1 }, { if: { title: "Oats" } }), `the condition does not hold: document 'a' is at revision ${revision}`],
        [notes.update("none", { a: 1 }, { if: { title: "Oats" } }), "the condition does not hold: document 'none' does not exist"],
        [notes.increment("a", "title"), "field 'title' of document 'a' is not a number"],
        [notes.link("a", "tags", "x", { in: "tags" }), "link target 'x' does not exist in collection 'tags'; create it first"],
        [other.collection("notes").delete("a"), /^the rules of the collection do not allow you to delete document 'a': ./],
    ]) {
        await assert.rejects(write, { message })
    }
})
