/** Of React's types only what is used, so that nothing has to be installed to check ours. */
declare module "react" {
    export function useMemo<T>(make: () => T, dependencies: readonly unknown[]): T
    export function useSyncExternalStore<T>(
        subscribe: (listener: () => void) => () => void,
        getSnapshot: () => T,
        getServerSnapshot?: () => T
    ): T
}
