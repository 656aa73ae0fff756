import { type PointerEvent, useEffect, useRef, useState } from "react"
import { createRoot } from "react-dom/client"
import { connect } from "trebuchet"
import { useActorState } from "trebuchet/react"
import { Chat, type Person, UUID } from "./chat.js"

const client = connect("/")
const chat = client.actor(Chat, "chat")

// The identity of this window, which survives a reload. Each window has another one.
// crypto.randomUUID needs HTTPS or localhost; getRandomValues works everywhere.
const digits = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("")
const id = UUID((sessionStorage.id ??= digits.toUpperCase().replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")))
const suggested = (sessionStorage.name ??= ["Ada", "Bob", "Cleo", "Dan", "Eve", "Finn"][Math.floor(Math.random() * 6)]!)

function colour(of: string): string {
    return `hsl(${parseInt(of.slice(0, 4), 16) % 360} 55% 45%)`
}

/** Sends one position at a time. While a call is in progress, only the newest position waits. */
function pointer(): (position: { x: number; y: number } | null) => void {
    let next: { x: number; y: number } | null | undefined
    let isBusy = false
    return async (position) => {
        next = position
        if (isBusy || client.status.getSnapshot().phase !== "live") return
        isBusy = true
        while (next !== undefined) {
            const sent = next
            next = undefined
            await chat.point(id, sent).result()
        }
        isBusy = false
    }
}
const point = pointer()

function App() {
    const { phase } = useActorState(client.status)
    const messages = useActorState(chat.messages) ?? []
    const people = useActorState(chat.people) ?? []
    const [name, setName] = useState<string>(suggested)
    const [text, setText] = useState("")
    const [error, setError] = useState("")
    const end = useRef<HTMLLIElement>(null)

    // The room removes a person whose connection closes, so enter again over each new one.
    useEffect(() => {
        sessionStorage.name = name
        if (phase === "live") void chat.enter(id, name).result()
    }, [phase, name])
    useEffect(() => void end.current?.scrollIntoView({ block: "end" }), [messages])

    async function say() {
        setText("")
        const said = await chat.say(text, id, name).result()
        if (said.ok) return setError("")
        setText(text)
        const refusal = said.error.data
        if (refusal && "tooLong" in refusal) setError(`At most ${refusal.tooLong.limit} characters, please.`)
        else if (refusal && "empty" in refusal) setError("Say something.")
        else setError(said.error.message)
    }

    function move(event: PointerEvent<HTMLElement>) {
        const room = event.currentTarget.getBoundingClientRect()
        void point({ x: (event.clientX - room.left) / room.width, y: (event.clientY - room.top) / room.height })
    }

    return (
        <main className="room" onPointerMove={move} onPointerLeave={() => void point(null)}>
            <header>
                <h1>Chat</h1>
                <div className="people" aria-label="Who is here">
                    {people.map((person) => (
                        <span key={person.id} className="person" title={person.name} style={{ background: colour(person.id) }}>
                            {person.name.slice(0, 1)}
                        </span>
                    ))}
                </div>
                <span className="status" role="status" data-phase={phase}>{phase}</span>
            </header>
            <ol>
                {messages.map((message) => (
                    <li key={message.id} className={message.author === id ? "mine" : ""}>
                        <small>
                            {message.name}, {message.date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}
                        </small>
                        <p>{message.text}</p>
                    </li>
                ))}
                <li ref={end} />
            </ol>
            {error && <p className="error" role="alert">{error}</p>}
            <form onSubmit={(event) => (event.preventDefault(), void say())}>
                <input className="name" aria-label="Your name" value={name} maxLength={24} onChange={(event) => setName(event.target.value)} />
                <input className="text" aria-label="Message" placeholder="Say something" value={text} onChange={(event) => setText(event.target.value)} autoFocus />
                <button>Send</button>
            </form>
            {people.map((person) => person.id !== id && <Pointer key={person.id} person={person} />)}
        </main>
    )
}

function Pointer({ person: { id, name, cursor } }: { person: Person }) {
    if (!cursor) return null
    return (
        <div className="cursor" style={{ left: `${cursor.x * 100}%`, top: `${cursor.y * 100}%` }}>
            <svg width="16" height="18" viewBox="0 0 16 18"><path d="M1 1l5 15 3-6 6-2z" fill={colour(id)} stroke="#fff" /></svg>
            <span style={{ background: colour(id) }}>{name}</span>
        </div>
    )
}

createRoot(document.getElementById("app")!).render(<App />)
