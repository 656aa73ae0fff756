// Tests with the program at TREBUCHET_TOOL.
import assert from "node:assert/strict"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import { actorType, connect } from "../dist/trebuchet.js"
import { Daemon, tool, until } from "./daemon.mjs"
import { WebSocket } from "./sockets.mjs"

const skip = tool ? false : "TREBUCHET_TOOL is not set"
const limits = { skip, timeout: 60_000 }

const TodoList = actorType({
    name: "TodoList",
    methods: {
        addTodo: { target: "addTodo(title:)", idempotent: true },
        toggleTodo: { target: "toggleTodo(id:)" },
        removeTodo: { target: "removeTodo(id:)" },
    },
    states: { state: { target: "observeState" } },
})

/** A client and a daemon for one test. */
function withDaemon(name, body, args) {
    test(name, limits, async () => {
        const daemon = await Daemon.start(args)
        const client = daemon.connect()
        try {
            await body(client, daemon)
        } finally {
            client.close()
            await daemon.end()
        }
    })
}

withDaemon("calls, states and what a method throws", async (client) => {
    const todos = client.actor(TodoList, "todos")
    const titles = []
    todos.state.subscribe(() => titles.push(todos.state.getSnapshot().todos.map(({ title }) => title)))
    await until(todos.state, (value) => value)
    const milk = await todos.addTodo("Milk")
    // The change of a call is shown before its response.
    assert.deepEqual(todos.state.getSnapshot().todos, [milk])
    const long = "x".repeat(128)
    await todos.addTodo(long)
    const before = todos.state.getSnapshot()
    assert.equal((await todos.toggleTodo(milk.id)).isDone, true)
    const after = todos.state.getSnapshot()
    assert.equal(after.todos[0].isDone, true)
    assert.equal(before.todos[0].isDone, false)
    // The value arrived as a patch or was shared: unchanged parts are the same objects.
    assert.equal(after.todos[1], before.todos[1])
    assert.deepEqual(titles, [[], ["Milk"], ["Milk", long], ["Milk", long]])
    const result = await todos.removeTodo("00000000-0000-0000-0000-000000000000").result()
    assert.equal(result.error.code, "application")
    assert.deepEqual(result.error.data, { id: "00000000-0000-0000-0000-000000000000" })
    for (const [call, code] of [
        [client.actor("nobody").call("x()"), "actorNotFound"],
        [client.actor("todos").call("x()"), "methodNotFound"],
        [client.actor("todos").call("addTodo(title:)", [7]), "invalidArguments"],
    ]) {
        assert.equal((await call.result()).error.code, code)
    }
})

withDaemon("two clients see the same state, and a part and a filter show their selection", async (client, daemon) => {
    const other = daemon.connect()
    try {
        const mine = client.actor("game").state("observeGameState")
        const level = client.actor("game").state("observeGameState").at("/level")
        const players = other.actor("game").state("observeGameState").filter({ path: "/players", distinct: true })
        const levels = []
        level.subscribe(() => levels.push(level.getSnapshot()))
        players.subscribe(() => {})
        await until(mine, (value) => value)
        await other.actor("game").call("join(player:)", ["Ada"])
        await other.actor("game").call("advanceLevel()")
        assert.deepEqual(players.getSnapshot(), ["Ada"])
        await until(mine, (value) => value.level === 2)
        assert.deepEqual(levels, [1, 2])
        assert.deepEqual(mine.getSnapshot().players, ["Ada"])
    } finally {
        other.close()
    }
})

withDaemon("many concurrent calls are answered in the order of the calls", async (client) => {
    const counter = client.actor("counter")
    await until(client.status, ({ phase }) => phase === "live")
    const calls = Array.from({ length: 3000 }, () => counter.call("increment()"))
    assert.deepEqual(await Promise.all(calls), Array.from({ length: 3000 }, (_, index) => index + 1))
})

test("a client reconnects after the server was killed, and shows the last values until then", limits, async () => {
    const folder = await mkdtemp(join(tmpdir(), "trebuchet-web-"))
    const data = ["--data", join(folder, "state.db")]
    let daemon = await Daemon.start(data)
    const client = daemon.connect()
    try {
        const todos = client.actor(TodoList, "todos")
        todos.state.subscribe(() => {})
        await todos.addTodo("Milk")
        const before = todos.state.getSnapshot()
        await daemon.end()
        await until(client.status, ({ phase }) => phase === "stale")
        assert.equal(todos.state.getSnapshot(), before)
        const waiting = todos.addTodo("Bread")
        daemon = await Daemon.start(data, daemon.port)
        await waiting
        await until(client.status, ({ phase }) => phase === "live")
        const value = await until(todos.state, ({ todos }) => todos.length === 2)
        // The server has another epoch and sends the whole value: equal parts are the same objects.
        assert.equal(value.todos[0], before.todos[0])
    } finally {
        client.close()
        await daemon.end()
        await rm(folder, { recursive: true })
    }
})

test("a server that shuts down drains its clients, and they wait for the next one", limits, async () => {
    let daemon = await Daemon.start()
    const client = daemon.connect()
    try {
        await client.actor("counter").call("increment()")
        await daemon.end("SIGTERM")
        await until(client.status, ({ phase }) => phase === "stale")
        daemon = await Daemon.start([], daemon.port)
        assert.equal(await client.actor("counter").call("increment()"), 1)
    } finally {
        client.close()
        await daemon.end()
    }
})

withDaemon("an invalid token is refused, a valid one is accepted, and its end is reported", async (client, daemon) => {
    const grant = await client.actor("auth").call("signInAsGuest()")
    const tokens = ["wrong", grant.accessToken, undefined]
    const wrong = connect(daemon.url, { WebSocket, token: "wrong" })
    const right = daemon.connect({ token: () => tokens.shift() })
    try {
        await until(wrong.status, ({ phase }) => phase === "refused")
        assert.equal(wrong.status.getSnapshot().error.code, "unauthenticated")
        // The function returns another token at the second request.
        await until(right.status, ({ phase }) => phase === "live")
        assert.deepEqual(tokens, [undefined])
        const errors = []
        right.status.subscribe(() => errors.push(right.status.getSnapshot().error?.code))
        await client.actor("auth").call("signOut(_:)", [grant.refreshToken])
        await until(right.status, () => errors.includes("unauthenticated"))
        await until(right.status, ({ phase }) => phase === "live")
        assert.deepEqual(tokens, [])
    } finally {
        wrong.close()
        right.close()
    }
})
