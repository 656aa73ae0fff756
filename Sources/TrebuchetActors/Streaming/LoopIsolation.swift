internal import Transports

/// The isolation of a loop, for what belongs to no actor of the app: what it awaits on actors of the loop changes no
/// executor.
actor LoopIsolation {
    private nonisolated let loop: any EventLoop

    init(_ loop: any EventLoop) { self.loop = loop }

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
}
