import CAllocationCount
import Dispatch
import TestSupport
import Trebuchet

/// Methods that report their thread, and the factory's record.
@Trebuchet
distributed actor ActivationTestActor {
    @StreamedState var visits: Visits = Visits()

    struct Visits: Codable, Sendable, Equatable {
        var count = 0
        var padding = ""
    }

    private let journal: Journal
    private let name: String

    init(journal: Journal, name: String = "", actorSystem: TrebuchetActorSystem) {
        self.journal = journal
        self.name = name
        self.actorSystem = actorSystem
    }

    func deactivate() async throws {
        journal.record("\(name) goes")
        if name.hasSuffix("stubborn") { throw Stubborn() }
        if name.hasSuffix("slow") { await journal.wait(for: "\(name) may go") }
    }

    distributed func enter() -> Int {
        visits.count += 1
        return visits.count
    }

    distributed func look() -> Int { visits.count }
    distributed func pad(_ bytes: Int) { visits.padding = String(repeating: "x", count: bytes) }

    distributed func note(_ text: String) { journal.record(text) }

    distributed func noteLater(_ text: String) async { journal.record(text) }

    @Idempotent
    distributed func enterOnce() -> Int { enter() }

    /// The threads of the method and of its awaited calls: a function, a plain actor, a concurrent function, another actor.
    distributed func threads() async -> [String] {
        let own = Threads.name
        let system = actorSystem
        let elsewhere = [
            await Threads.plain(), await PlainWorker().thread(), await Threads.concurrent(),
            (try? await ConcurrentWorker(actorSystem: system).thread()) ?? "",
        ]
        return [own] + elsewhere + [Threads.name]
    }

    struct Stubborn: Error {}
}

/// An actor outside of all reactors.
@Trebuchet(executor: .concurrent)
distributed actor ConcurrentWorker {
    distributed func thread() -> String { Threads.name }
}

actor PlainWorker {
    func thread() -> String { Threads.name }
}

/// An actor with a custom executor.
@Trebuchet
distributed actor OwnExecutor {
    private static let queue = OwnQueue()
    nonisolated var unownedExecutor: UnownedSerialExecutor { Self.queue.asUnownedSerialExecutor() }

    /// Whether the method runs on the actor's executor.
    distributed func now() -> Bool { OwnQueue.isCurrent }
    distributed func later() async -> Bool {
        await Task.yield()
        return OwnQueue.isCurrent
    }
}

/// A queue that is an executor.
final class OwnQueue: SerialExecutor {
    private static let key = DispatchSpecificKey<Bool>()
    private let queue = DispatchQueue(label: "own")

    init() { queue.setSpecific(key: Self.key, value: true) }

    static var isCurrent: Bool { DispatchQueue.getSpecific(key: key) == true }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}

enum Threads {
    /// The name of the current thread, for example `reactor-0`.
    @inline(never)
    static var name: String {
        var name = [CChar](repeating: 0, count: 16)
        thread_name(&name)
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    static func plain() async -> String { name }
    @concurrent static func concurrent() async -> String { name }
}

extension AccessPolicy {
    /// A policy that rejects everything, and records the requests.
    static func refusing(_ asked: Journal) -> AccessPolicy {
        AccessPolicy(authorize: { _, actor, target in
            asked.record("\(actor) \(target)")
            return false
        })
    }
}
