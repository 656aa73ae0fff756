extension Stream {
    /// Sets the subject to the current value, if there is one, and to each that follows, until the subscription ends.
    ///
    ///     self              1────2────3──
    ///     subject           1────2────3──
    ///
    /// Senders wait until all dependents of the subject have processed the value.
    nonisolated public func bind(to subject: Subject<Value>) async -> AnySubscription {
        await tap { await subject.set($0) }
    }

    /// Sends the current value, if there is one, and each that follows to the relay, until the subscription ends.
    ///
    ///     self              1────2────3──
    ///     relay             1────2────3──
    ///
    /// Senders wait until the relay's subscribers have processed the value.
    nonisolated public func bind(to relay: Relay<Value>) async -> AnySubscription {
        await tap { await relay.send($0) }
    }

    /// Pushes the current value, if there is one, and each that follows, until the subscription ends. Senders do not
    /// wait for the dependents of the subject.
    ///
    ///     self              12───3──────
    ///     subject           ─1──2──3────   (each takes a while below)
    nonisolated public func bind(to subject: SyncContinuationSubject<Value>) async -> AnySubscription {
        await tap { subject.continuation.yield($0) }
    }

    /// Starts a task with the current value, if there is one, and with each that follows. The previous task is
    /// cancelled.
    ///
    ///     self               1──────2──3──────
    ///     task { work($0) }  [1───] [2 [3───]   (the task with 2 is cancelled)
    ///
    /// Senders do not wait for the tasks. When the subscription ends, the running task is cancelled.
    nonisolated public func task(
        priority: TaskPriority? = nil, execute body: @escaping @Sendable (Value) async -> Void
    ) async -> AnySubscription {
        let worker = OperatorTask.current
        let running = OperatorState<(task: Task<Void, Never>?, isOver: Bool)>((nil, false))
        let subscription = await tap { value in
            let task = worker.start(priority: priority) { await body(value) }
            // A delivery may be in progress while the subscription ends.
            let old = running.withLock { running in
                if running.isOver { return task as Task<Void, Never>? }
                defer { running.task = task }
                return running.task
            }
            old?.cancel()
        }
        return AnySubscription {
            subscription.cancel()
            running.exchange((nil, true)).task?.cancel()
        }
    }
}
