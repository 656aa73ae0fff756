import Dispatch
import QStream
import Testing

/// The isolation of closures: the actor that sends the value.
@Suite(.timeLimit(.minutes(5))) struct IsolationTests {
    private let log = Log<String>()

    private func record(_ name: String) { log.record(name + (QueueExecutor.isHere ? "" : " elsewhere")) }

    @Test("a value passes operators and subscribers without leaving its sender's actor")
    func operators() async { await operators(from: Sender()) }

    private func operators(from sender: isolated Sender) async {
        let subject = Subject(value: 0)
        let subscription = await subject.map { value in
            record("map")
            return value
        }
        .filter { _ in
            record("filter")
            return true
        }
        .compactMap { value -> Int? in
            record("compactMap")
            return value
        }
        .scan(0) { _, value in
            record("scan")
            return value
        }
        .flatMap { value in
            record("flatMap")
            return [value]
        }
        .removeDuplicates { _, _ in
            record("removeDuplicates")
            return false
        }
        .subscribe { _ in record("subscribe") }
        let jobs = sender.home.jobs
        log.clear()
        await subject.set(1)
        await subject.set(2)
        let once = ["map", "filter", "compactMap", "scan", "flatMap"]
        #expect(log.values == once + ["subscribe"] + once + ["removeDuplicates", "subscribe"])
        #expect(sender.home.jobs == jobs, "no job returned to the actor, since none left it")
        withExtendedLifetime(subscription) {}
    }

    @Test("a value also stays on the actor in joins, switches and bindings")
    func meetings() async { await meetings(from: Sender()) }

    private func meetings(from sender: isolated Sender) async {
        let (a, b, heads) = (Subject(value: 0), Subject(value: 0), Subject(value: Subject(value: 0)))
        let relay = Relay<Int>()
        let subscriptions = [
            await a.combineLatest(b).subscribe { _, _ in record("combineLatest") },
            await a.merge(b).subscribe { _ in record("merge") },
            await heads.switchToLatest().subscribe { _ in record("switchToLatest") },
            await relay.subscribe { _ in record("relay") },
            await b.bind(to: relay),
        ]
        let jobs = sender.home.jobs
        log.clear()
        await a.set(1)
        await b.set(2)
        await b.mutate { value in
            record("mutate")
            value += 1
        }
        await heads.set(Subject(value: 1))
        await heads.value.set(2)
        #expect(
            log.values == [
                "merge", "combineLatest", "merge", "relay", "combineLatest", "mutate", "merge", "relay",
                "combineLatest", "switchToLatest", "switchToLatest",
            ])
        #expect(sender.home.jobs == jobs)
        withExtendedLifetime(subscriptions) {}
    }

    @Test("a closure with another isolation runs there, and so does everything below a dispatch")
    func elsewhere() async { await elsewhere(from: Sender()) }

    private func elsewhere(from sender: isolated Sender) async {
        let subject = Subject(value: 0)
        let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
        let subscription = await subject.map { @concurrent value in
            record("concurrent")
            return value
        }
        .map { @MainActor value in
            record("main actor")
            return value
        }
        .map { value in
            record("here again")
            return value
        }
        .dispatch()
        .subscribe { value in
            record("dispatched")
            continuation.yield(value)
        }
        log.clear()
        await subject.set(1)
        for await _ in stream { break }
        #expect(
            log.values == ["concurrent elsewhere", "main actor elsewhere", "here again", "dispatched elsewhere"])
        withExtendedLifetime(subscription) {}
    }
}

private actor Sender {
    nonisolated let home = QueueExecutor()
    nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }
}

/// Runs an actor on a dedicated queue, which knows whether code runs on it.
private final class QueueExecutor: SerialExecutor {
    private static let key = DispatchSpecificKey<Bool>()
    private let queue = DispatchQueue(label: "IsolationTests")
    private let count = Log<Void>()

    init() { queue.setSpecific(key: Self.key, value: true) }

    static var isHere: Bool { DispatchQueue.getSpecific(key: key) == true }
    /// The number of jobs of the actor.
    var jobs: Int { count.values.count }

    func enqueue(_ job: consuming ExecutorJob) {
        count.record(())
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
