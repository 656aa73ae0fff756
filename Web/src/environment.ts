/** The platform functions that the client uses; tests supply their own. */
export interface Environment {
    now(): number
    /** Returns a number in `0..<1`. */
    random(): number
    setTimeout(action: () => void, milliseconds: number): any
    clearTimeout(timer: any): void
    /** Returns false if the system reports that there is no network. */
    isOnline(): boolean
    isVisible(): boolean
    /** Calls `wake` with each event after which the connection should be checked immediately. Returns a function that ends this. */
    listen(wake: (event: PageEvent) => void): () => void
}

/** The phase in which the window receives non-bubbling events of the document. */
export const capture = { capture: true }

/** Returns true if the event suspends the page, which may be resumed later. */
export const isSuspension = ({ type, persisted }: PageEvent): boolean => type === "freeze" || (type === "pagehide" && !!persisted)

export interface PageEvent {
    readonly type: string
    /** For `pagehide`: true if the page enters the back/forward cache. */
    readonly persisted?: boolean
}

export function browser(): Environment {
    const environment = globalThis as any
    return {
        now: Date.now,
        random: Math.random,
        setTimeout: (action, milliseconds) => setTimeout(action, milliseconds),
        clearTimeout: (timer) => clearTimeout(timer),
        isOnline: () => environment.navigator?.onLine !== false,
        isVisible: () => environment.document?.visibilityState !== "hidden",
        listen(wake) {
            const kinds = ["online", "offline", "pagehide", "pageshow", "freeze", "resume", "visibilitychange"]
            for (const kind of kinds) environment.addEventListener?.(kind, wake, capture)
            return () => {
                for (const kind of kinds) environment.removeEventListener?.(kind, wake, capture)
            }
        },
    }
}
