// Storage of sessions and writes in memory.

export class MemoryStorage {
    all = new Map()
    getItem(key) {
        return this.all.get(key) ?? null
    }
    setItem(key, value) {
        this.all.set(key, value)
    }
    removeItem(key) {
        this.all.delete(key)
    }
    copy() {
        const copy = new MemoryStorage()
        copy.all = new Map(this.all)
        return copy
    }
}

/** The storage that several tabs share; each has a `tab()`. Without one it is the only tab. */
export class MemoryPending {
    writes = new Map()
    owners = new Map()
    listeners = new Set()

    constructor(shared) {
        this.shared = shared ?? this
    }
    tab() {
        return new MemoryPending(this)
    }
    changed() {
        for (const listener of [...this.shared.listeners]) listener()
    }
    /** Resolves when the condition holds. */
    until(condition) {
        return new Promise((resolve) => {
            const check = () => {
                if (!condition()) return
                this.shared.listeners.delete(check)
                resolve()
            }
            this.shared.listeners.add(check)
            check()
        })
    }

    async add(write) {
        await null
        if (this.shared.isFull) throw new Error("it is full")
        this.shared.writes.set(write.secret + write.number, structuredClone(write))
        this.changed()
    }
    async remove(writes) {
        await null
        for (const { secret, number } of writes) this.shared.writes.delete(secret + number)
        this.changed()
    }
    async all() {
        await null
        return [...this.shared.writes.values()].map((each) => structuredClone(each))
    }
    async claim(secret) {
        const { owners } = this.shared
        if (!owners.has(secret)) owners.set(secret, this)
        return owners.get(secret) === this
    }
    close() {
        const { owners } = this.shared
        for (const [secret, owner] of owners) if (owner === this) owners.delete(secret)
    }
}

/** Web Locks with waiting and stealing, for tabs that share a session; Node has none. */
export class MemoryLocks {
    holders = new Map()
    waiting = []

    request(name, { signal, steal }, action) {
        return new Promise((resolve, reject) => {
            const entry = { name, action, resolve, reject }
            if (steal) {
                const holder = this.holders.get(name)
                this.holders.delete(name)
                holder?.reject(new DOMException("stolen", "AbortError"))
                this.waiting.unshift(entry)
            } else this.waiting.push(entry)
            signal?.addEventListener("abort", () => {
                if (!this.waiting.includes(entry)) return
                this.waiting = this.waiting.filter((each) => each !== entry)
                reject(signal.reason)
            })
            queueMicrotask(() => this.next(name))
        })
    }

    next(name) {
        const entry = this.waiting.find((each) => each.name === name)
        if (!entry || this.holders.has(name)) return
        this.waiting = this.waiting.filter((each) => each !== entry)
        this.holders.set(name, entry)
        const ended = (end) => (result) => {
            end(result)
            if (this.holders.get(name) !== entry) return
            this.holders.delete(name)
            this.next(name)
        }
        Promise.resolve().then(() => entry.action({ name })).then(ended(entry.resolve), ended(entry.reject))
    }
}

/** A window that dispatches page events; `body` runs with its listeners as the global ones. */
export async function withPage(body) {
    const page = new EventTarget()
    const names = ["addEventListener", "removeEventListener"]
    const before = names.map((name) => Object.getOwnPropertyDescriptor(globalThis, name))
    for (const name of names) Object.defineProperty(globalThis, name, { value: page[name].bind(page), configurable: true, writable: true })
    const tell = (type, more) => page.dispatchEvent(Object.assign(new Event(type), more))
    try {
        await body(tell)
    } finally {
        names.forEach((name, index) => (before[index] ? Object.defineProperty(globalThis, name, before[index]) : delete globalThis[name]))
    }
}
