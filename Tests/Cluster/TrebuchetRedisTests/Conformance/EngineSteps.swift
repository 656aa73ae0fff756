import Platform
import Testing
import TrebuchetCluster

/// Operations of nodes on one slot and its log, with the expected outcomes as text.
enum EngineStep: Sendable {
    /// A node, named by its letter, acquires the slot; `acquired 2`, `held by a 1`.
    case acquire(Character, duration: Duration = EngineRig.long, String)
    case renew(Character, fence: UInt64, duration: Duration = EngineRig.long, String)
    case release(Character, fence: UInt64, String)
    /// `a 2`, `nobody`.
    case holder(String)
    /// The short lease expires.
    case pass
    /// `accepted 1`, `repeated ok`, `fenced 2`, `lease over`, `top 3`, `full`.
    case append(Character, fence: UInt64, top: UInt64, String?, call: String? = nil, reply: String = "", String)
    /// `stored`, `positionMismatch`, `fenced 2`, `lease over`.
    case store(Character, fence: UInt64, at: UInt64, String, keeping: Int = 0, String)
    /// Outcomes as for `store`.
    case remove(Character, fence: UInt64, at: UInt64, String)
    /// `resumed 1:2=x top 1:2`, `snapshot 1:1=all 1:2=x top 1:2`, `start top 0:0`.
    case read(LogPosition?, limit: Int = 100, String)
    /// `ok`, `none`.
    case reply(String, String)

    /// The expected outcome; of operations that carry a lease it may be `data loss`.
    var expected: String {
        switch self {
        case .acquire(_, _, let expected), .renew(_, _, _, let expected), .release(_, _, let expected),
            .holder(let expected), .append(_, _, _, _, _, _, let expected), .store(_, _, _, _, _, let expected),
            .remove(_, _, _, let expected), .read(_, _, let expected), .reply(_, let expected):
            expected
        case .pass: ""
        }
    }
}

/// Runs steps on an engine.
struct EnginePlayer {
    let engine: any ClusterEngine
    let log: ClusterLog
    /// The nodes by their letters.
    private let nodes: [Character: ClusterNode]

    init(_ engine: any ClusterEngine, log: String = "todos") throws {
        self.engine = engine
        self.log = ClusterLog(log)
        nodes = ["a": try ClusterNode(name: "a"), "b": try ClusterNode(name: "b"), "c": try ClusterNode(name: "c")]
    }

    /// Runs a step and returns its outcome and the expected one; nil for a step without an outcome.
    func play(_ step: EngineStep) async throws -> (outcome: String, expected: String)? {
        do {
            return try await outcome(of: step)
        } catch let error as ClusterEngineError where error.code == .dataLoss {
            return ("data loss", step.expected)
        }
    }

    private func outcome(of step: EngineStep) async throws -> (outcome: String, expected: String)? {
        switch step {
        case .acquire(let node, let duration, let expected):
            let claim = try await engine.acquire(log.slot, for: nodes[node]!, duration: duration)
            switch claim {
            case .acquired(let lease):
                #expect(lease.owner == nodes[node]! && lease.slot == log.slot)
                return ("acquired \(lease.fence)", expected)
            case .ownedByOther(let holder): return ("held by \(name(holder))", expected)
            }
        case .renew(let node, let fence, let duration, let expected):
            return ("\(try await engine.renewLease(lease(node, fence), duration: duration))", expected)
        case .release(let node, let fence, let expected):
            return ("\(try await engine.releaseLease(lease(node, fence)))", expected)
        case .holder(let expected):
            return (try await engine.owner(of: log.slot).map(name) ?? "nobody", expected)
        case .pass: return nil
        case .append(let node, let fence, let top, let payload, let call, let reply, let expected):
            let append = LogAppend(
                payload.map { Array($0.utf8) }, expectedHead: top,
                call: call.map { LogAppend.Call(id: $0, reply: Array(reply.utf8)) })
            return (words(try await engine.append(append, to: log, lease: lease(node, fence))), expected)
        case .store(let node, let fence, let offset, let bytes, let keeping, let expected):
            let outcome = try await engine.storeSnapshot(
                Array(bytes.utf8), at: offset, of: log, lease: lease(node, fence), keepingLast: keeping)
            return (words(outcome), expected)
        case .remove(let node, let fence, let offset, let expected):
            return (words(try await engine.removeLog(log, at: offset, lease: lease(node, fence))), expected)
        case .read(let position, let limit, let expected):
            return (words(try await engine.readLog(log, after: position, limit: limit)), expected)
        case .reply(let call, let expected):
            return (
                try await engine.reply(to: call, in: log).map { String(decoding: $0, as: UTF8.self) } ?? "none",
                expected
            )
        }
    }

    private func lease(_ node: Character, _ fence: UInt64) -> SlotLease {
        SlotLease(log.slot, owner: nodes[node]!, fence: fence)
    }

    private func name(_ holder: SlotOwner) -> String {
        #expect(holder.remaining > .zero)
        return "\(holder.lease.owner.name) \(holder.lease.fence)"
    }

    private func words(_ outcome: SnapshotOutcome) -> String {
        switch outcome {
        case .stored: "stored"
        case .positionMismatch: "misplaced"
        case .fenced(let fence): "fenced \(fence)"
        case .leaseExpired: "lease over"
        }
    }

    private func words(_ outcome: AppendOutcome) -> String {
        switch outcome {
        case .accepted(let offset): "accepted \(offset)"
        case .repeated(let reply): "repeated \(String(decoding: reply, as: UTF8.self))"
        case .fenced(let fence): "fenced \(fence)"
        case .leaseExpired: "lease over"
        case .headMismatch(let top): "top \(top)"
        case .full: "full"
        }
    }

    private func words(_ reading: LogReadResult) -> String {
        var words: [String]
        switch reading.start {
        case .resumed: words = ["resumed"]
        case .start: words = ["start"]
        case .snapshot(let snapshot):
            words = ["snapshot", "\(snapshot.position)=\(String(decoding: snapshot.bytes, as: UTF8.self))"]
        }
        words += reading.entries.map { "\($0.position)=\(String(decoding: $0.payload, as: UTF8.self))" }
        return (words + ["top", "\(reading.head)"]).joined(separator: " ") + (reading.isComplete ? "" : " …")
    }
}

/// Random steps from a seed, most of them with an effect.
struct RandomEngineScenario {
    private var random: RandomSource
    private(set) var top: UInt64 = 0
    private var owner: Character = "a"
    private var fence: UInt64 = 1

    init(seed: UInt64) { random = RandomSource(seed: seed) }

    /// Updates the state from the outcome of a step.
    mutating func note(_ outcome: String, of step: EngineStep) {
        let last = outcome.split(separator: " ").last.flatMap { UInt64($0) } ?? 0
        if outcome.hasPrefix("accepted ") { top = last }
        if case .remove = step, outcome == "stored" { top = 0 }
        if case .acquire(let node, _, _) = step, outcome.hasPrefix("acquired ") { (owner, fence) = (node, last) }
    }

    mutating func next() -> EngineStep {
        let isOwner = Int.random(in: 0..<5, using: &random) > 0
        let node = isOwner ? owner : "ab".randomElement(using: &random)!
        let fence = isOwner ? fence : UInt64.random(in: 0...4, using: &random)
        let near = top &+ UInt64.random(in: 0...3, using: &random) &- min(top, 2)
        let call = "c\(Int.random(in: 0...9, using: &random))"
        switch Int.random(in: 0..<16, using: &random) {
        case 0: return .acquire("ab".randomElement(using: &random)!, "")
        case 1: return .renew(node, fence: fence, "")
        case 2: return Bool.random(using: &random) ? .release(node, fence: fence, "") : .holder("")
        case 3, 4:
            return .store(node, fence: fence, at: near, "s\(near)", keeping: Int.random(in: 0...4, using: &random), "")
        case 5:
            // Rarely: the properties of a log are tested at its positions.
            return Int.random(in: 0..<32, using: &random) == 0
                ? .remove(node, fence: fence, at: near, "") : .reply(call, "")
        case 6, 7:
            let offset = top &- min(top, UInt64.random(in: 0...14, using: &random))
            return .read(
                LogPosition(fence: fence, offset: offset), limit: Int.random(in: 1...20, using: &random), "")
        case 8: return .read(nil, limit: Int.random(in: 1...20, using: &random), "")
        case 9, 10:
            let payload = Bool.random(using: &random) ? "p\(top)" : nil
            return .append(node, fence: fence, top: top, payload, call: call, reply: "r\(top)", "")
        case 11: return .append(node, fence: fence, top: near, "n\(near)", "")
        default: return .append(node, fence: fence, top: top, "t\(top)", "")
        }
    }
}
