// This is a separate bundle: pages that persist no writes do not load it.
import type { Backend } from "./backend.js"
import { needSame } from "./build.js"
import type { Command } from "./commands.js"
import { failure } from "./rejections.js"
import { capture, isSuspension } from "./trebuchet.js"
import type { PersistedWrite, PendingStore } from "./types.js"

const tableName = "writes"
/** The version of the database's schema. */
const version = 1
/** The timeout of the database in milliseconds: the database may wait for a suspended tab. */
const patience = 10_000

/** Returns the result of an IndexedDB request. */
const answer = <T>(request: any): Promise<T> =>
    new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result)
        request.onerror = () => reject(request.error)
    })

/** Returns the result of a promise, or rejects when the timeout expires. */
async function within<T>(answer: Promise<T>, why: () => string): Promise<T> {
    let timer
    const late = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(failure("timeout", why())), patience)))
    try {
        return await Promise.race([answer, late])
    } finally {
        clearTimeout(timer)
    }
}

/** Opens the store that `pendingStore` returns. */
export function openStore(name: string, database: any, locks: any): PendingStore {
    let opened: Promise<any> | undefined
    let isClosed = false
    const forget = (): void => void (opened = undefined)
    const open = async (): Promise<any> => {
        const request = database.open(name, version)
        let problem = "does not respond"
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
            throw error?.name === "VersionError" ? failure("unavailable", `database '${name}' belongs to a newer version of this app: reload the page`) : error
        }
    }
    const end = (): void => {
        opened?.then((database) => database.close()).catch(() => {})
        forget()
    }
    /** Begins a transaction. Opens the database again after a failure, and after the browser or this store has closed it. */
    const begin = async (mode?: string, options?: object, isRepeated?: boolean): Promise<any> => {
        try {
            const transaction = (await (opened ??= open())).transaction(tableName, mode, options)
            // The last write is still persisted, and the database does not stay open.
            if (isClosed) end()
            return transaction
        } catch (error: any) {
            forget()
            if (isRepeated || error?.name !== "InvalidStateError") throw error
            return begin(mode, options, true)
        }
    }
    const unanswered = (): string => `database '${name}' does not respond`
    // A suspended page would block other tabs.
    const rest = (event: any): void => {
        if (isSuspension(event)) end()
    }
    const kinds = ["freeze", "pagehide"]
    for (const kind of kinds) (globalThis as any).addEventListener?.(kind, rest, capture)
    /** Resolves when the changes that `change` requests are on the disk. */
    const write = async (change: (table: any) => void): Promise<void> => {
        const transaction = await begin("readwrite", { durability: "strict" })
        change(transaction.objectStore(tableName))
        const done = new Promise<void>((resolve, reject) => {
            transaction.oncomplete = () => resolve()
            transaction.onabort = () => reject(transaction.error)
        })
        // The transaction then also ends in a page that is suspended now.
        transaction.commit?.()
        return within(done, unanswered)
    }
    const releases: (() => void)[] = []
    return {
        add: (added) => write((table) => table.put(added)),
        remove: (keys) => write((table) => keys.forEach(({ secret, number }) => table.delete([secret, number]))),
        all: async () => within(answer<PersistedWrite[]>((await begin()).objectStore(tableName).getAll()), unanswered),
        claim: (secret) =>
            new Promise((resolve, reject) => {
                const hold = (lock: unknown): unknown => {
                    resolve(!!lock && !isClosed)
                    if (isClosed) return
                    // The lock is held until the promise ends; without a lock there is no promise.
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

/** The claimed secrets whose writes could not be read yet. */
const claims = new WeakMap<PendingStore, Set<string>>()

/**
 * Adopts the writes of closed tabs, and those made before a reload. Another user's writes are left to a tab in which that user is signed
 * in.
 */
export async function adopt(backend: Backend, store: PendingStore): Promise<void> {
    needSame(backend)
    const claimed = claims.get(store) ?? new Set()
    claims.set(store, claimed)
    // The order is that in which the writes were made: each page load has a separate secret.
    const accounts = new Map((await store.all()).sort((a, b) => a.time - b.time).map(({ secret, account }) => [secret, account]))
    for (const [secret, account] of accounts) {
        if (backend._mine.has(secret) || (account && account !== backend._account)) continue
        if (!claimed.has(secret) && !(await store.claim(secret))) continue
        claimed.add(secret)
        // The writes are read again: their tab may have sent some in the meantime.
        const left = (await store.all()).filter((write) => write.secret === secret).sort((a, b) => a.number - b.number)
        backend._mine.add(secret)
        const commandsOf = ({ json, commands }: PersistedWrite): Command[] => (json ? (backend._json.parse(json) as Command[]) : commands)
        const [first] = left
        if (first) backend.collection(first.collection)._adopt(first.account, left.map((write) => ({ ...write, commands: commandsOf(write), wasSent: true })))
    }
}
