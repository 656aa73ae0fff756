/// The executor of tasks that prefer a reactor: what they run outside of any actor runs there.
package final class ReactorTasks: TaskExecutor {
    private let reactor: Reactor

    init(_ reactor: Reactor) { self.reactor = reactor }

    package func enqueue(_ job: consuming ExecutorJob) { reactor.enqueue(task: UnownedJob(job)) }
}
