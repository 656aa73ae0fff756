/// One load of a loader, from its beginning until its work has ended.
@MainActor
final class LoadRun {
    /// The load that the current task works for, also in its child tasks.
    static var current: LoadRun? { Context.run }

    /// Whether the outcome counts: no newer load has begun, and nobody has cancelled or reset the loader.
    private(set) var isCurrent = true
    /// Called once when the outcome counts no more.
    var whenOutdated: (() -> Void)?
    private let loader: ObjectIdentifier
    private var task: Task<Void, Never>?

    /// The work keeps the loader alive until it has ended, and so the loader's identity stays its own.
    init(of loader: AnyObject, work: @escaping @MainActor (LoadRun) async -> Void) {
        self.loader = ObjectIdentifier(loader)
        task = Context.$run.withValue(self) {
            Task { await work(self) }
        }
    }

    func belongs(to loader: AnyObject) -> Bool { self.loader == ObjectIdentifier(loader) }

    func becomeOutdated() {
        guard isCurrent else { return }
        isCurrent = false
        whenOutdated?()
        whenOutdated = nil
    }

    func stop() { task?.cancel() }

    /// Returns when the work has ended. When the waiting task is cancelled, the work is.
    func end() async {
        guard let task else { return }
        await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
    }
}

/// Apart, because what a task carries with it belongs to no actor.
private enum Context {
    @TaskLocal static var run: LoadRun?
}
