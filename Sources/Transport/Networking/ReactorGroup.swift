internal import CEpoll
internal import Glibc
internal import Synchronization
public import Transports

/// The reactors that a server or a client runs on.
///
/// Reactors are shared within the process and live as long as it. Ten servers in a test run on the same few threads.
public struct ReactorGroup: Sendable {
    /// The reactors of the group.
    public let reactors: [Reactor]

    package init(_ reactors: [Reactor]) { self.reactors = reactors }

    private static let servers = Mutex<[Reactor]>([])
    private static let clients = Mutex<[Reactor]>([])

    /// Returns the first `count` reactors of the process for servers. The default is the number of cores.
    public static func servers(count: Int? = nil) throws(TransportError) -> ReactorGroup {
        try acquireGroup(count ?? coreCount, from: servers, named: "reactor")
    }

    /// Returns the reactors for clients: one by default, separate from those of servers, so that both can run in one process.
    public static func clients(count: Int = 1) throws(TransportError) -> ReactorGroup {
        try acquireGroup(count, from: clients, named: "client")
    }

    /// Returns the reactors of a server. Traps if the machine cannot provide a thread or an epoll descriptor, because then it
    /// cannot run a server.
    package static func forServer(count: Int?) -> ReactorGroup {
        do { return try servers(count: count) } catch { fatalError("starting reactors: \(error)") }
    }

    /// The reactor that the clients of this process share.
    package static var client: Reactor {
        do { return try clients().reactors[0] } catch { fatalError("starting the client's reactor: \(error)") }
    }

    /// Reactors for exclusive use until they are returned: for tests that advance the clock.
    private static let exclusive = Mutex<[Reactor]>([])

    package static func acquireExclusive(_ count: Int) -> ReactorGroup {
        let reactors = exclusive.withLock { idle in
            let reused = Array(idle.suffix(count))
            idle.removeLast(reused.count)
            // The time of day of a server is derived from it: an earlier test must not have advanced it.
            for reactor in reused { reactor.ahead.store(0, ordering: .relaxed) }
            return reused
        }
        do {
            var group = reactors
            while group.count < count { group.append(try Reactor(name: "apart")) }
            return ReactorGroup(group)
        } catch {
            fatalError("starting reactors: \(error)")
        }
    }

    package func releaseExclusive() { Self.exclusive.withLock { $0 += reactors } }

    /// The number of cores that this process may use.
    package static var coreCount: Int {
        var set = [UInt8](repeating: 0, count: 128)
        guard gnu_sched_getaffinity(0, UInt(set.count), &set) >= 0 else {
            return max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        }
        return max(1, set.reduce(0) { $0 + $1.nonzeroBitCount })
    }

    private static func acquireGroup(
        _ count: Int, from pool: borrowing Mutex<[Reactor]>, named name: String
    ) throws(TransportError) -> ReactorGroup {
        guard (1...1024).contains(count) else {
            throw TransportError(.system, "\(count) reactors were requested; the number must be between 1 and 1024")
        }
        return try pool.withLock { (reactors: inout [Reactor]) throws(TransportError) -> ReactorGroup in
            while reactors.count < count { reactors.append(try Reactor(name: "\(name)-\(reactors.count)")) }
            return ReactorGroup(Array(reactors.prefix(count)))
        }
    }
}

/// The executor of tasks that prefer a reactor: it runs their code outside of actors there.
package final class ReactorTasks: TaskExecutor {
    private let reactor: Reactor

    init(_ reactor: Reactor) { self.reactor = reactor }

    package func enqueue(_ job: consuming ExecutorJob) { reactor.enqueue(task: UnownedJob(job)) }
}
