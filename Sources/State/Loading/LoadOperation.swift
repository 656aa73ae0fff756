/// One load of a loader, from its beginning until its work has ended.
@MainActor
final class LoadOperation {
    /// The load of the current task, also in its child tasks.
    static var current: LoadOperation? { LoadTaskContext.run }

    /// True while the outcome counts: no newer load has begun, and the loader was not cancelled or reset.
    private(set) var isCurrent = true
    /// Called once when the outcome no longer counts.
    var whenOutdated: (() -> Void)?
    private let loader: ObjectIdentifier
    private var task: Task<Void, Never>?

    /// Starts the work. It keeps the loader alive until it has ended, so that the loader's identity stays unique.
    init(of loader: AnyObject, work: @escaping @MainActor (LoadOperation) async -> Void) {
        self.loader = ObjectIdentifier(loader)
        task = LoadTaskContext.$run.withValue(self) {
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

    /// Returns when the work has ended. Cancellation of the waiting task cancels the work.
    func waitUntilFinished() async {
        guard let task else { return }
        await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
    }
}

/// At file level, because a task-local value belongs to no actor.
private enum LoadTaskContext {
    @TaskLocal static var run: LoadOperation?
}
