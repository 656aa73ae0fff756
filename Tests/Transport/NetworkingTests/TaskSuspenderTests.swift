import Networking
import Platform
import Synchronization
import Testing
import Transports

/// `TaskSuspender` on a reactor and on a Dispatch loop.
@Suite(.timeLimit(.minutes(5))) struct TaskSuspenderTests {
    /// An actor on an event loop whose tasks wait for each other.
    private actor Waiting {
        private let loop: any EventLoop
        private let tasks: TaskSuspender
        private var suspended: [SuspendedTask] = []
        private(set) var order: [Int] = []
        private var onSuspension: (() -> Void)?
        /// The number of steps that did not run on the loop.
        private(set) var strays = 0

        init(_ loop: any EventLoop) {
            self.loop = loop
            tasks = TaskSuspender(loop)
        }

        nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

        private func note() { strays += loop.isCurrent ? 0 : 1 }

        func wait(_ number: Int, times: Int) async {
            for _ in 0..<times {
                note()
                await tasks.suspend {
                    self.note()
                    self.suspended.append($0)
                    self.onSuspension?()
                }
                note()
            }
            order.append(number)
        }

        /// Resumes the suspended tasks in their order, as soon as there are so many.
        func resumeAll(_ count: Int) async {
            if suspended.count < count {
                await withCheckedContinuation { continuation in
                    onSuspension = {
                        guard self.suspended.count == count else { return }
                        self.onSuspension = nil
                        continuation.resume()
                    }
                }
            }
            let tasks = suspended
            suspended = []
            // Continues each task in a later turn.
            let before = order
            for (index, task) in tasks.enumerated() {
                let bound = LoopBound(task, on: loop)
                if index % 2 == 0 { task.resume() } else { loop.execute { bound.value.run() } }
            }
            #expect(order == before)
        }
    }

    private static func loops() throws -> [any EventLoop] {
        [try Reactor(name: "suspender"), DispatchLoop(name: "suspender")]
    }

    @Test("suspended tasks continue on their loop when they are resumed, in that order")
    func order() async throws {
        for loop in try Self.loops() {
            let waiting = Waiting(loop)
            await withTaskGroup { group in
                for number in 0..<50 { group.addTask { await waiting.wait(number, times: 3) } }
                for _ in 0..<3 { await waiting.resumeAll(50) }
            }
            let order = await waiting.order
            #expect(order.count == 50 && Set(order).count == 50)
            #expect(await waiting.strays == 0)
        }
    }

    @Test("a task with another executor preference or a higher priority continues on the actor's loop too")
    func preferences() async throws {
        let other = try Reactor(name: "other")
        for loop in try Self.loops() {
            let waiting = Waiting(loop)
            await withTaskGroup { group in
                group.addTask(executorPreference: other.taskExecutor) { await waiting.wait(0, times: 2) }
                group.addTask(executorPreference: loop.taskExecutor) { await waiting.wait(1, times: 2) }
                let low = Task(priority: .background) { await waiting.wait(2, times: 2) }
                // Waiting for it raises its priority while it is suspended.
                group.addTask(priority: .high) { await low.value }
                for _ in 0..<2 { await waiting.resumeAll(3) }
            }
            #expect(await Set(waiting.order) == [0, 1, 2])
            #expect(await waiting.strays == 0)
        }
    }
}
