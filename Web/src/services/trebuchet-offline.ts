// A bundle of its own: pages that keep no writes do not load it.
import type { Backend } from "./backend.js"
import { needSame } from "./build.js"
import type { Command } from "./commands.js"
import type { KeptWrite, PendingStore } from "./types.js"

const tableName = "writes"

/** The answer of a request of IndexedDB. */
const answer = <T>(request: any): Promise<T> =>
    new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result)
        request.onerror = () => reject(request.error)
    })

/** What `pendingStore` gives. */
export function openStore(name: string, database: any, locks: any): PendingStore {
    let opened: Promise<any> | undefined
    let isClosed = false
    const forget = (): void => void (opened = undefined)
    const open = async (): Promise<any> => {
        const request = database.open(name, 1)
        request.onupgradeneeded = () => request.result.createObjectStore(tableName, { keyPath: ["secret", "number"] })
        const result = await answer<any>(request)
        result.onclose = forget
        return result
    }
    const end = (): void => {
        opened?.then((database) => database.close()).catch(() => {})
        forget()
    }
    /** What failed, or was closed by the browser, is opened anew. */
    const begin = async (mode?: string, options?: object): Promise<any> => {
        try {
            const transaction = (await (opened ??= open())).transaction(tableName, mode, options)
            // What is written last is kept all the same, and leaves nothing open.
            if (isClosed) end()
            return transaction
        } catch (error) {
            forget()
            throw error
        }
    }
    /** Resolves when what `change` has asked for is on the disk. */
    const write = async (change: (table: any) => void): Promise<void> => {
        const transaction = await begin("readwrite", { durability: "strict" })
        change(transaction.objectStore(tableName))
        return new Promise((resolve, reject) => {
            transaction.oncomplete = () => resolve()
            transaction.onabort = () => reject(transaction.error)
        })
    }
    const releases: (() => void)[] = []
    return {
        add: (kept) => write((table) => table.put(kept)),
        remove: (keys) => write((table) => keys.forEach(({ secret, number }) => table.delete([secret, number]))),
        all: async () => answer<KeptWrite[]>((await begin()).objectStore(tableName).getAll()),
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
