import assert from "node:assert/strict"
import { spawnSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { test } from "node:test"
import { fileURLToPath } from "node:url"

const folder = join(dirname(fileURLToPath(import.meta.url)), "../.build/types")

// As written by the generator.
const generated = `
import { actorType, connect, date, struct } from "../../dist/trebuchet.js"
import type { Call, CallOptions, Codec, State } from "../../dist/trebuchet.js"
export type UUID = string & { readonly __brand: "UUID" }
export interface TodoItem { id: UUID; title: string; due?: Date }
export interface TodoListState { todos: TodoItem[]; counts: Record<string, number> }
export type BankError = { poor: { missing: number } } | { closed: {} }
export interface Move { from: number; to: number }
export const TodoItemCodec: Codec<TodoItem> = /*#__PURE__*/ struct({ due: date })
export const TodoList = /*#__PURE__*/ actorType<{
    methods: {
        addTodo(title: string, options?: CallOptions): Call<TodoItem>
        pay(amount: number, due: Date | null, options?: CallOptions): Call<void, BankError>
    }
    states: { state: TodoListState }
    events: { moves: Move }
}>({
    name: "TodoList",
    methods: {
        addTodo: { target: "addTodo(title:)", result: TodoItemCodec, idempotent: true },
        pay: { target: "pay(_:due:)", arguments: [undefined, date] },
    },
    states: { state: { target: "observeState" } },
    events: { moves: { target: "observeMoves" } },
})
export const Empty = actorType<{ methods: {}; states: {}; events: {} }>({ name: "Empty", methods: {}, states: {}, events: {} })
export const Bare = actorType<{ methods: { f(options?: CallOptions): Call<number> } }>({ name: "Bare", methods: { f: { target: "f()" } } })
export const client = connect("ws://localhost:8080", { token: async () => "t", timeout: 5 })
export const todos = client.actor(TodoList, "todos")
export const check = async (): Promise<void> => {
    const item: TodoItem = await todos.addTodo("Milk", { signal: new AbortController().signal, timeout: 5 })
    const result = await todos.pay(5, null).result()
    if (!result.ok && result.error.data && "poor" in result.error.data) { const missing: number = result.error.data.poor.missing; void missing }
    const value: TodoListState | undefined = todos.state.getSnapshot()
    const title: State<string | undefined> = todos.state.at("/todos/0/title")
    const due: Date | undefined = todos.state.at("/todos/0/due").getSnapshot()
    const street: string | undefined = client.actor("x").state<{ home?: { street: string } | null }>().at("/home/street").getSnapshot()
    const anything: number = client.actor("x").state().at("/a/b").getSnapshot()
    const items: TodoItem[] | undefined = todos.state.at("/todos").getSnapshot()
    const count: number | undefined = todos.state.at("/counts/x").getSnapshot()
    const filtered: State<TodoItem[]> = todos.state.filter({ path: "/todos", distinct: true })
    const whole: State<TodoListState> = todos.state.filter({ minIntervalMilliseconds: 100 })
    for await (const state of todos.state) { const list: TodoItem[] = state.todos; void list }
    for await (const move of todos.moves) { const from: number = move.from; void from }
    todos.moves.subscribe(({ to }) => to.toFixed(), (error) => error.code === "overflow")
    const number: number = await client.actor(Bare, "b").f()
    const untyped: string = await client.actor("x").call<string>("f(_:)", [1], { idempotent: true })
    const phase: "connecting" | "live" | "stale" | "offline" | "refused" = client.status.getSnapshot().phase
    void [item, value, title, due, street, anything, items, count, filtered, whole, number, untyped, phase, Empty]
}
`

const collections = `
import { services, type Collection, type Fields, type Query, type QueryOptions } from "../../dist/trebuchet-services.js"
export interface Todo { id: string; title: string; done: boolean; note?: string; at?: number; tags: string[]; place?: { city: string; shelf?: number }; votes: Record<string, number> }
const app = services("ws://localhost:8080")
export const todos = app.collection<Todo>("todos")
const todo: Todo = { id: "1", title: "Milk", done: false, tags: [], votes: {} }
void todos.create(todo)
void todos.create({ ...todo, at: { $serverTime: true } }, { expiresIn: 5, ifAbsent: true })
void todos.update("1", { done: true, note: null, at: { $serverTime: true } }, { if: { done: false, note: null } })
void todos.merge("1", { place: { city: "Bonn", shelf: null }, votes: { ada: 1, bob: null } })
void todos.merge("1", { place: null, tags: ["urgent"] })
void todos.increment("1", "at")
void todos.link("1", "tags", "urgent", { in: "tags", if: { done: true } })
void todos.transaction((transaction) => { transaction.create(todo); transaction.update("1", { title: "Oats" }) })
const query: Query<Todo> = todos.query({ where: { done: false, title: { prefix: "M" }, note: null, "place.city": "Bonn", $createdAt: { less: 5 }, $any: [{ done: true }, { at: { greater: 1 } }] }, order: ["-title", "place.shelf", "-$createdAt"], limit: 5 })
void todos.query({ where: { title: { in: ["a", "b"] }, tags: { contains: "urgent" }, at: undefined }, order: "-done" })
void todos.pages({ where: { title: new Date() }, order: "title" })
const title: string | undefined = query.getSnapshot()?.[0]?.title
const bare = app.collection("notes")
const options: QueryOptions = { where: { a: 1, "b.c": { bigger: 2 }, $any: [{ d: 3 }] }, order: ["-a", "b"] }
const field: string = "a"
void bare.create({ id: 1, anything: "a" })
void bare.update(1, { anything: null, other: { x: 1 } }, { if: { y: 1 } })
void bare.merge(1, { a: { b: null } })
void bare.increment(1, field)
void bare.query(options)
void bare.query({ where: { [field]: 1 }, order: field })
export const copy = async <Item extends Fields>(from: Collection<Item>, to: Collection<Item>, item: Item): Promise<void> => {
    await to.create(item)
    await from.delete(item.id)
}
void copy(todos, todos, todo)
const any: Collection<any> = todos
void any.create({ id: "1", x: 2 })
void [title, options]
`

const react = `
import { useActor, useActorState } from "../../dist/react.js"
import { readable } from "../../dist/svelte.js"
import { list, show, watch } from "../../dist/dom.js"
import { exact } from "../../dist/trebuchet-exact.js"
import { type CallSpan, newTrace, traces } from "../../dist/trebuchet-traces.js"
import { connect } from "../../dist/trebuchet.js"
import { client, TodoItem, TodoList, TodoListState } from "./generated.js"
const todos = useActor(client, TodoList, "todos")
const state: TodoListState | undefined = useActorState(todos.state)
const items: TodoItem[] | undefined = useActorState(todos.state, "/todos")
const phase: string = useActorState(client.status).phase
readable(todos.state).subscribe((value) => value?.todos.length)
watch(client.status, ({ phase }) => phase)
declare const element: HTMLElement
show(todos.state.at("/todos"), element, (items) => String(items.length))
list(todos.state.at("/todos"), element, ({ id }) => id, () => document.createElement("li"), (li, { title }) => (li.textContent = title))
connect(new URL("ws://x"), { json: exact })
const spans: CallSpan[] = []
connect("/", { traces: traces({ current: () => null, sampling: 0.1, spanEnded: (span) => spans.push(span) }) })
void todos.addTodo("a", { traceparent: newTrace() })
void [state, items, phase]
`

// Each of these must not compile.
const wrong = [
    "todos.addTodo(5)",
    "todos.addTodo()",
    'todos.addTodo("a", "b")',
    'todos.addTod("a")',
    'todos.pay("5", null)',
    "todos.pay(5)",
    "todos.call('f()')",
    "const n: Promise<number> = todos.addTodo('a'); void n",
    "const s: string | undefined = todos.state.getSnapshot(); void s",
    "const n: number | undefined = todos.state.at('/todos').getSnapshot(); void n",
    "todos.state.filter({ every: 5 })",
    "todos.state.filter({ where: { path: '/x', op: 'like', value: 1 } })",
    "todos.moves.subscribe(({ color }) => color)",
    "todos.pay(5, null).result().then((result) => result.value)",
    "todos.pay(5, null).result().then((result) => { if (!result.ok) result.error.data?.rich })",
    "actorType<{ methods: { f(): Call<void> } }>({ name: 'A', methods: {} })",
    "actorType<{ methods: { f(): Call<void> } }>({ name: 'A', methods: { f: {} } })",
    "connect('ws://x', { tokn: 't' })",
    "client.status.getSnapshot().phase === 'closed'",
    "todos.state = todos.state",
    "const id: import('./generated.js').UUID = 'x'; void id",
    "const n: number | undefined = todos.state.at('/todos/0/title').getSnapshot(); void n",
    "const title: string = todos.state.at('/todos/0/title').getSnapshot(); void title",
    "items.create({ id: '1', titel: 'Milk' })",
    "items.create({ id: '1', title: 'Milk' })",
    "items.create({ id: '1', title: 'Milk', done: false, tags: [], votes: {}, titel: 'Milk' })",
    "items.create({ title: 'Milk', done: false, tags: [], votes: {} })",
    "items.update('1', { done: 'yes' })",
    "items.update('1', { titel: 'Milk' })",
    "items.update('1', { title: { $serverTime: true } })",
    "items.update('1', { title: null })",
    "items.update('1', { done: true }, { if: { don: false } })",
    "items.merge('1', { place: { town: 'Bonn' } })",
    "items.increment('1', 'vote')",
    "items.transaction((each) => each.update('1', { done: 'yes' }))",
    "items.query({ where: { titel: 'Milk' } })",
    "items.query({ where: { done: 'yes' } })",
    "items.query({ where: { title: { begins: 'M' } } })",
    "items.query({ where: { $any: [{ titel: 'Milk' }] } })",
    "items.query({ order: '-titel' })",
    "items.get({ where: { 'plase.city': 'Bonn' } })",
]

function compile(files) {
    const options = ["--noEmit", "--strict", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes", "--noUnusedLocals", "--target", "es2022"]
    const outcome = spawnSync("tsc", [...options, "--module", "es2022", "--moduleResolution", "node16", ...files], { cwd: folder, encoding: "utf8" })
    return outcome.stdout
}

test("generated files, adapters and their users compile; wrong uses do not", { timeout: 120_000 }, () => {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, "generated.ts"), generated)
    writeFileSync(join(folder, "adapters.ts"), react)
    writeFileSync(join(folder, "collections.ts"), collections)
    // One mistake per line, so that one compilation reports all.
    const lines = wrong.map((line, index) => `export function f${index}() { ${line} }`)
    const imports = 'import { client, todos } from "./generated.js"; import { actorType, connect } from "../../dist/trebuchet.js"; import type { Call } from "../../dist/trebuchet.js"; import { todos as items } from "./collections.js"; void [client]'
    writeFileSync(join(folder, "wrong.ts"), [imports, ...lines].join("\n"))
    const output = compile(["generated.ts", "adapters.ts", "collections.ts", "wrong.ts"])
    assert.doesNotMatch(output, /generated\.ts|adapters\.ts|collections\.ts|dist/, output)
    const found = new Set([...output.matchAll(/wrong\.ts\((\d+),/g)].map(([, line]) => Number(line)))
    const missed = wrong.filter((_, index) => !found.has(index + 2))
    assert.deepEqual(missed, [], output)
    assert.equal(found.has(1), false, output)
})
