// Written by scripts/embed from the files in Web; do not change it here.
// swift-format-ignore-file

/// What the server brings for browsers.
enum WebFiles {
    /// The client.
    static let trebuchet: StaticString = ""

    /// The client of the services.
    static let services: StaticString = ""

    /// The page at `/` of `trebuchet serve`.
    static let start: StaticString = ####"""
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Trebuchet</title>
<link rel="icon" href="data:,">
<style>
:root {
    color-scheme: light dark;
    --page: #f6f4ef; --card: #fffdf8; --ink: #23211c; --soft: #736d60; --line: #e3ddcf; --accent: #b4532a; --good: #3c7a4d;
}
@media (prefers-color-scheme: dark) {
    :root { --page: #1a1917; --card: #242220; --ink: #ece7db; --soft: #9d9686; --line: #3a3733; --accent: #e2875b; --good: #7cc08f; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 40rem; margin: 0 auto; padding: clamp(1.5rem, 6vw, 4rem) 1.25rem; }
header { display: flex; align-items: baseline; justify-content: space-between; gap: 1rem; }
h1 { font-size: 1.6rem; letter-spacing: -.02em; margin: 0; }
h2 { font-size: 1rem; margin: 2.5rem 0 .5rem; }
p { margin: .35rem 0 1.25rem; color: var(--soft); }
#status { font-size: .85rem; color: var(--soft); white-space: nowrap; }
#status::before { content: ""; display: inline-block; width: .6em; height: .6em; margin-right: .45em; border-radius: 50%; background: var(--accent); }
#status[data-phase=live]::before { background: var(--good); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 14px; overflow: hidden; box-shadow: 0 1px 3px #0001; }
form { display: flex; border-bottom: 1px solid var(--line); }
input[type=text] { flex: 1; min-width: 0; border: 0; background: none; color: inherit; font: inherit; padding: .95rem 1.1rem; }
input[type=text]::placeholder { color: var(--soft); opacity: .8; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
button { border: 0; background: none; color: var(--accent); font: inherit; font-weight: 600; padding: 0 1.1rem; cursor: pointer; }
ul { list-style: none; margin: 0; padding: 0; }
li { display: flex; align-items: center; border-bottom: 1px solid var(--line); }
li:last-child { border-bottom: 0; }
li label { flex: 1; min-width: 0; display: flex; gap: .75rem; align-items: center; padding: .7rem 1.1rem; cursor: pointer; overflow-wrap: anywhere; }
li input { accent-color: var(--accent); width: 1.1rem; height: 1.1rem; margin: 0; flex: none; }
li.done span { color: var(--soft); text-decoration: line-through; }
li button { font-weight: 400; color: var(--soft); padding: .7rem 1.1rem; }
#empty, #error { padding: .9rem 1.1rem; margin: 0; }
#error { color: var(--accent); }
[hidden] { display: none !important; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .8rem 1rem; overflow-x: auto; font: .85rem/1.5 ui-monospace, monospace; margin: .35rem 0 1rem; }
a { color: var(--accent); }
</style>
</head>
<body>
<main>
<header><h1>Trebuchet</h1><span id="status" role="status">connecting</span></header>
<p>Everybody who opens this page shares one list. Open it in a second window and look.</p>
<section class="card" aria-label="To do">
    <form id="form" autocomplete="off">
        <input id="title" type="text" placeholder="What is to be done?" aria-label="What is to be done?" maxlength="200" required>
        <button>Add</button>
    </form>
    <ul id="list"></ul>
    <p id="empty" hidden>Nothing to do.</p>
    <p id="error" role="alert" hidden></p>
</section>

<h2>From a terminal</h2>
<pre id="commands">trebuchet call todos 'addTodo(title:)' '"Milk"'
trebuchet observe todos observeState</pre>

<h2>A page of your own</h2>
<p>Save this as <code>public/index.html</code> and start <code>trebuchet serve --static public</code>. There is nothing to build.</p>
<pre id="sample">&lt;!doctype html&gt;
&lt;pre id="out"&gt;&lt;/pre&gt;
&lt;script type="module"&gt;
import { connect } from "/trebuchet.js"

const todos = connect(location.origin.replace(/^http/, "ws")).actor("todos")
const state = todos.state("observeState")
state.subscribe(() =&gt; {
    out.textContent = JSON.stringify(state.getSnapshot(), null, 2)
})
await todos.call("addTodo(title:)", ["Written by my page"])
&lt;/script&gt;</pre>

<h2>An actor of your own</h2>
<p>The list is a Swift actor of forty lines. Write yours, and <code>server.pages(.folder("public"), .clientLibrary)</code> serves your page beside it. What this server hosts stands in <a href="/schema.json">/schema.json</a>.</p>
</main>

<script type="module">
const $ = id => document.getElementById(id)

function fail(error) {
    $("error").textContent = error ? error.message || String(error) : ""
    $("error").hidden = !error
}

function row(item, todos) {
    const [line, label, box, text, remove] = ["li", "label", "input", "span", "button"].map(name => document.createElement(name))
    line.className = item.isDone ? "done" : ""
    box.type = "checkbox"
    box.checked = item.isDone
    // The list changes when the server has changed it: the box shows what is so.
    box.addEventListener("change", () => todos.call("toggleTodo(id:)", [item.id]).then(() => fail(), error => {
        box.checked = item.isDone
        fail(error)
    }))
    text.textContent = item.title
    remove.type = "button"
    remove.textContent = "×"
    remove.setAttribute("aria-label", `Remove ${item.title}`)
    remove.addEventListener("click", () => todos.call("removeTodo(id:)", [item.id]).then(() => fail(), fail))
    label.append(box, text)
    line.append(label, remove)
    return line
}

try {
    const { connect } = await import("/trebuchet.js")
    const client = connect(location.origin.replace(/^http/, "ws") + "/")
    const todos = client.actor("todos")
    const state = todos.state("observeState")

    // Rows are kept by the item that they show: of what did not change, the client gives the same object.
    let rows = new Map()
    function show() {
        const items = state.getSnapshot()?.todos ?? []
        const next = new Map()
        for (const item of items) next.set(item, rows.get(item) ?? row(item, todos))
        rows = next
        $("list").replaceChildren(...rows.values())
        $("empty").hidden = items.length > 0 || state.getSnapshot() === undefined
    }
    function tell() {
        const { phase, error } = client.status.getSnapshot()
        $("status").textContent = phase
        $("status").dataset.phase = phase
        const failed = state.status.getSnapshot()
        fail(phase === "refused" ? error : failed.phase === "failed" ? failed.error : undefined)
    }
    state.subscribe(show)
    state.status.subscribe(tell)
    client.status.subscribe(tell)
    show()
    tell()

    $("form").addEventListener("submit", async event => {
        event.preventDefault()
        const title = $("title").value.trim()
        if (!title) return
        $("title").value = ""
        try {
            await todos.call("addTodo(title:)", [title], { idempotent: true })
            fail()
        } catch (error) {
            $("title").value = title
            fail(error)
        }
    })
} catch (error) {
    $("status").textContent = "no client library"
    fail(error)
}
</script>
</body>
</html>

"""####
}
