import CEpoll
import Commands
import Foundation
import Glibc
import Platform
import Synchronization

/// Measures typical calls to a server in a separate process, with a bare 64-byte echo in the same run as the baseline.
package struct CallRounds {
    /// The called method, by its name for `--call`.
    package enum Call: String, CaseIterable {
        case add, place, submit, scale, later, authorised, crossing

        /// Returns the message of one call. Its id is unique among the in-flight calls of the connection, and all ids have the
        /// same length.
        func message(_ slot: Int) -> String {
            let id = "c\(1000 + slot)"
            return switch self {
            case .add, .authorised, .crossing: Invocation.text("counter", "add(_:)", ["1"], id: id)
            case .place: Invocation.text("orders", "place(_:)", [Self.orderText], id: id)
            case .submit: Invocation.text("orders", "submit(_:)", [Self.orderText], id: id)
            case .scale: Invocation.text("orders", "scale(_:)", ["1.5"], id: id)
            case .later: Invocation.text("orders", "later(_:)", ["1"], id: id)
            }
        }

        var options: [String] { ["--examples", "--bench"] + (self == .authorised ? ["--bench-callers"] : []) }

        /// The order that is placed and submitted.
        package static let orderText =
            #"{"id":"0B5E9F4C-7C1B-4E0B-9C55-0D6E1F6A2B3C","customer":"Ada Lovelace","#
            + #""placed":"2026-01-01T00:00:00.250Z","lines":[{"sku":"WIDGET-10","quantity":3,"price":19.99},"#
            + #"{"sku":"GADGET-7","quantity":12,"price":4.5}],"note":null,"express":true}"#
    }

    let call: Call
    let connections: Int
    let inFlight: Int
    let rounds: Int
    let seconds: Double

    /// Alternates both measurements and reports the best of each, so that other load affects both. Server and load have
    /// separate cores if there are two.
    func run() async throws -> BenchReport {
        let cores = Cores.ofProcess
        let usesSeparateCores = cores.count > 1
        if usesSeparateCores, call != .crossing { Cores.keepThisProcess(on: Array(cores.dropFirst())) }
        defer { if usesSeparateCores { Cores.keepThisProcess(on: cores) } }
        var (echoes, echoCosts, calls) = ([Double](), [Double](), [Double]())
        var (costs, costsAtHome) = ([Double](), [Double]())
        for _ in 0..<rounds {
            let echo = try await echo(usesSeparateCores ? [cores[0]] : nil)
            echoes.append(echo.rate)
            echoCosts.append(echo.cost)
            let (rate, cost) = try await measure(
                reactors: call == .crossing ? 2 : 1, usesSeparateCores ? [cores[0]] : nil)
            calls.append(rate)
            costs.append(cost)
            if call == .crossing { costsAtHome.append(try await measure(reactors: 1, nil).cost) }
        }
        var report = BenchReport()
        report.setSubject("call", call.rawValue)
        report.add("connections", connections)
        report.add("in_flight", inFlight)
        report.add("rounds", rounds)
        report.add("message_bytes", call.message(0).utf8.count)
        report.add("messages_per_second", calls.max()!)
        report.add("server_cpu_ns", costs.min()!)
        report.add("echo_messages_per_second", echoes.max()!)
        report.add("echo_cpu_ns", echoCosts.min()!)
        report.add("percent_of_echo", 100 * calls.max()! / echoes.max()!)
        report.add("percent_of_echo_by_cpu", 100 * echoCosts.min()! / costs.min()!)
        if call == .crossing {
            report.add("server_cpu_ns_at_home", costsAtHome.min()!)
            report.add("percent_of_cpu_at_home", 100 * costs.min()! / costsAtHome.min()!)
        }
        return report
    }

    private func echo(_ cores: [Int]?) async throws -> BareLoad.Outcome {
        let server = try MeasuredServer(command: ["bench", "bare-echo", "--port", "0"], cores: cores)
        defer { server.stop() }
        return try await BareLoad(BareLoad.Exchange(size: 64), inFlight: inFlight).run(
            at: server, connections: connections, seconds: seconds)
    }

    /// - Returns: calls per second, and the server's processor time in nanoseconds per call.
    private func measure(reactors: Int, _ cores: [Int]?) async throws -> (rate: Double, cost: Double) {
        let server = try MeasuredServer(
            command: ["serve", "--port", "0", "--reactors", "\(reactors)"] + call.options,
            cores: reactors == 1 ? cores : nil)
        defer { server.stop() }
        let process = try server.knownProcess()
        let answers = AnswerCheck()
        let load = RequestLoad(
            messages: (0..<inFlight).map { Array(call.message($0).utf8) }, script: answers, isAwake: true)
        let before = try process.processorTime()
        let report = try await load.run(
            url: server.url, subprotocols: [Invocation.subprotocol], connections: connections, seconds: seconds)
        let cost = Double(try process.processorTime() - before) / Double(load.answers.load(ordering: .relaxed))
        guard answers.failures == 0, report["errors"] == 0, let rate = report["messages_per_second"], rate > 0 else {
            throw UsageError("\(answers.failures) calls of \(call.rawValue) failed")
        }
        return (rate, cost)
    }
}

/// Checks that each response has a result.
///
/// `@unchecked Sendable`: used on the load's reactor, and read after the run.
private final class AnswerCheck: RequestScript, @unchecked Sendable {
    private(set) var failures = 0
    /// The offset of the result's name in a response; all callIDs have the same length.
    private var place = -1

    func write(_ message: inout [UInt8], connection: Int, slot: Int) {}

    func read(_ answer: UnsafeRawBufferPointer) {
        let name = "\"result\":" as StaticString
        if place < 0 {
            let text = String(decoding: answer, as: UTF8.self)
            guard let found = text.range(of: name.description) else { return failures += 1 }
            place = text.utf8.distance(from: text.startIndex, to: found.lowerBound)
        }
        let isThere =
            answer.count > place + name.utf8CodeUnitCount
            && memcmp(answer.baseAddress! + place, name.utf8Start, name.utf8CodeUnitCount) == 0
        if !isThere { failures += 1 }
    }
}

/// The processor cores that a process may use.
enum Cores {
    /// The core numbers of this process.
    static var ofProcess: [Int] {
        var set = [UInt8](repeating: 0, count: 128)
        guard gnu_sched_getaffinity(0, UInt(set.count), &set) >= 0 else { return [] }
        return set.indices.flatMap { byte in (0..<8).filter { set[byte] & 1 << $0 != 0 }.map { byte * 8 + $0 } }
    }

    /// Binds a thread, by its process-like id, to some cores; ignores a thread that has ended.
    static func keep(_ thread: Int32, on cores: [Int]) {
        var set = [UInt8](repeating: 0, count: 128)
        for core in cores { set[core / 8] |= 1 << (core % 8) }
        _ = gnu_sched_setaffinity(thread, UInt(set.count), set)
    }

    /// Binds all threads of this process to some cores.
    static func keepThisProcess(on cores: [Int]) {
        for thread in (try? ServerProcess(pid: getpid()).threadNumbers()) ?? [] { keep(thread, on: cores) }
    }
}
