internal import Transports

/// The isolation of a loop for code that belongs to no actor of the app. Awaiting actors of the loop from here switches no
/// executor.
actor LoopIsolation {
    private nonisolated let loop: any EventLoop

    init(_ loop: any EventLoop) { self.loop = loop }

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
}
