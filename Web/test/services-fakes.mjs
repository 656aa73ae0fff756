// What keeps sessions and writes, in memory.

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

/** What several tabs share; each has a `tab()`. By itself it is the only one. */
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
    /** Resolves when it is so. */
    until(condition) {
        return new Promise((resolve) => {
            const look = () => {
                if (!condition()) return
                this.shared.listeners.delete(look)
                resolve()
            }
            this.shared.listeners.add(look)
            look()
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

/** Web Locks that are waited for, which tabs need that share a session: Node has none. */
export class MemoryLocks {
    last = new Map()
    request(name, action) {
        const turn = (this.last.get(name) ?? Promise.resolve()).then(action)
        this.last.set(name, turn.catch(() => {}))
        return turn
    }
}
