// A bundle of its own: pages that keep no writes do not load it.
import type { Backend } from "./backend.js"
import { needSame } from "./build.js"
import type { Command } from "./commands.js"
import { failure } from "./refusals.js"
import { capture, isSuspension } from "./trebuchet.js"
import type { KeptWrite, PendingStore } from "./types.js"

const tableName = "writes"
/** The version of the database's schema. */
const version = 1
/** The timeout of the database in milliseconds: it may wait for a suspended tab. */
const patience = 10_000

/** The answer of a request of IndexedDB. */
const answer = <T>(request: any): Promise<T> =>
    new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result)
        request.onerror = () => reject(request.error)
    })

/** Rejects when the timeout expires. */
async function within<T>(answer: Promise<T>, why: () => string): Promise<T> {
    let timer
    const late = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(failure("timeout", why())), patience)))
    try {
        return await Promise.race([answer, late])
    } finally {
        clearTimeout(timer)
    }
}

/** What `pendingStore` gives. */
export function openStore(name: string, database: any, locks: any): PendingStore {
    let opened: Promise<any> | undefined
    let isClosed = false
    const forget = (): void => void (opened = undefined)
    const open = async (): Promise<any> => {
        const request = database.open(name, version)
        let problem = "does not answer"
        request.onblocked = () => (problem = "is open in another tab as an older version: close that tab")
        request.onupgradeneeded = () => request.result.createObjectStore(tableName, { keyPath: ["secret", "number"] })
        try {
            const result = await within(answer<any>(request), () => `database '${name}' ${problem}`)
            result.onclose = forget
            // Another tab deletes the database or changes its version, and waits until this connection is closed.
            result.onversionchange = () => {
                forget()
                result.close()
            }
            return result
        } catch (error: any) {
            // A connection that opens now is not used.
            request.onsuccess = () => request.result.close()
            throw error?.name === "VersionError" ? failure("unavailable", `database '${name}' is of a newer version of this app: reload the page`) : error
        }
    }
    const end = (): void => {
        opened?.then((database) => database.close()).catch(() => {})
        forget()
    }
    /** Opens the database again after a failure, and after the browser or this store has closed it. */
    const begin = async (mode?: string, options?: object, isRepeated?: boolean): Promise<any> => {
        try {
            const transaction = (await (opened ??= open())).transaction(tableName, mode, options)
            // What is written last is kept all the same, and leaves nothing open.
            if (isClosed) end()
            return transaction
        } catch (error: any) {
            forget()
            if (isRepeated || error?.name !== "InvalidStateError") throw error
            return begin(mode, options, true)
        }
    }
    const unanswered = (): string => `database '${name}' does not answer`
    // A suspended page would block other tabs.
    const rest = (event: any): void => {
        if (isSuspension(event)) end()
    }
    const kinds = ["freeze", "pagehide"]
    for (const kind of kinds) (globalThis as any).addEventListener?.(kind, rest, capture)
    /** Resolves when what `change` has asked for is on the disk. */
    const write = async (change: (table: any) => void): Promise<void> => {
        const transaction = await begin("readwrite", { durability: "strict" })
        change(transaction.objectStore(tableName))
        const done = new Promise<void>((resolve, reject) => {
            transaction.oncomplete = () => resolve()
            transaction.onabort = () => reject(transaction.error)
        })
        // It then ends also in a page that is suspended now.
        transaction.commit?.()
        return within(done, unanswered)
    }
    const releases: (() => void)[] = []
    return {
        add: (kept) => write((table) => table.put(kept)),
        remove: (keys) => write((table) => keys.forEach(({ secret, number }) => table.delete([secret, number]))),
        all: async () => within(answer<KeptWrite[]>((await begin()).objectStore(tableName).getAll()), unanswered),
        claim: (secret) =>
            new Promise((resolve, reject) => {
                const hold = (lock: unknown): unknown => {
                    resolve(!!lock && !isClosed)
                    if (isClosed) return
                    // Held until the promise ends, and by nobody when there is none.
                    return lock && new Promise<void>((release) => releases.push(release))
                }
                locks.request(name + secret, { ifAvailable: true }, hold).catch(reject)
            }),
        close() {
            isClosed = true
            for (const release of releases) release()
            for (const kind of kinds) (globalThis as any).removeEventListener?.(kind, rest, capture)
            end()
        },
    }
}

/** Secrets that are claimed, and whose writes could not be read yet. */
const claims = new WeakMap<PendingStore, Set<string>>()

/** Takes over writes of tabs that are gone, and those of before a reload. Another user's are left to a tab where he is signed in. */
export async function adopt(backend: Backend, store: PendingStore): Promise<void> {
    needSame(backend)
    const claimed = claims.get(store) ?? new Set()
    claims.set(store, claimed)
    // In the order in which they were made: each load of a page has a secret of its own.
    const accounts = new Map((await store.all()).sort((a, b) => a.time - b.time).map(({ secret, account }) => [secret, account]))
    for (const [secret, account] of accounts) {
        if (backend._mine.has(secret) || (account && account !== backend._account)) continue
        if (!claimed.has(secret) && !(await store.claim(secret))) continue
        claimed.add(secret)
        // Read again: their tab may have sent some in the meantime.
        const left = (await store.all()).filter((write) => write.secret === secret).sort((a, b) => a.number - b.number)
        backend._mine.add(secret)
        const commandsOf = ({ json, commands }: KeptWrite): Command[] => (json ? (backend._json.parse(json) as Command[]) : commands)
        const [first] = left
        if (first) backend.collection(first.collection)._adopt(first.account, left.map((write) => ({ ...write, commands: commandsOf(write), wasSent: true })))
    }
}
