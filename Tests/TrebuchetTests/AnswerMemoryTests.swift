import Networking
import TestSupport
import Testing
import WebSockets

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// What becomes of calls and repeats, by the time that passes; calls are letters.
@Suite struct AnswerMemoryTests {
    private typealias Memory = AnswerMemory<String>

    private var memory: Memory
    private var shares: AnswerShares

    init() { (memory, shares) = Self.memory { _ in } }

    /// With room for two answers of a connection and three in all, unless changed.
    private static func memory(_ change: (inout ServerLimits) -> Void) -> (Memory, AnswerShares) {
        var limits = ServerLimits()
        limits.answers = 3
        limits.answersPerConnection = 2
        limits.answerBytes = 2_000
        change(&limits)
        let shares = AnswerShares(limits)
        let each = Memory.Limits(
            answersPerConnection: limits.answersPerConnection, bytesPerConnection: limits.answerBytesPerConnection,
            time: 100)
        return (Memory(each, shares), shares)
    }

    private static let first = ConnectionName(number: 1, secret: 11)
    private static let second = ConnectionName(number: 2, secret: 22)
    private static let third = ConnectionName(number: 3, secret: 33)

    /// What `begin` says, as text; `run` for a call that runs.
    private mutating func begin(
        _ connection: ConnectionName, _ number: UInt64, _ call: String = "a", digest: Int = 1,
        by principal: String? = nil,
        from host: String? = nil, again: Bool = false, at now: UInt64 = 0
    ) -> String {
        let name = Memory.Name(connection: connection, number: number)
        let request = Memory.Request(digest: digest, principal: principal, isRepeat: again, host: Self.host(host))
        return switch memory.begin(name, request, call, at: now) {
        case nil: "run"
        case .waits(let first): "waits for \(first)"
        case .answered(.success(let bytes)): String(decoding: bytes, as: UTF8.self)
        case .answered(.failure(let error)): "\(error.code)"
        case .refused(let error): "refused: \(error.code)" + (Self.setting(error).map { " \($0)" } ?? "")
        }
    }

    /// The limit that an error names.
    private static func setting(_ error: TrebuchetError) -> String? {
        guard let name = error.message.firstRange(of: "(ServerLimits.") else { return nil }
        return String(error.message[name.upperBound...].prefix { $0 != ":" })
    }

    private static func host(_ text: String?) -> AddressKey? {
        text.flatMap { SocketAddress(literal: $0, port: 1) }.flatMap { AddressKey($0) }.flatMap {
            $0.isLoopback ? nil : $0
        }
    }

    @discardableResult
    private mutating func end(
        _ connection: ConnectionName, _ number: UInt64, _ answer: String = "1", at now: UInt64 = 0
    ) -> [String] {
        memory.end(Memory.Name(connection: connection, number: number), .success(Array(answer.utf8)), at: now)
    }

    @Test("a call runs once: who asks again waits for its answer, and later gets it")
    mutating func once() {
        #expect(begin(Self.first, 7, "a") == "run")
        #expect(begin(Self.first, 7, "b", again: true) == "waits for a")
        #expect(begin(Self.first, 7, "c", again: true) == "waits for a")
        #expect(end(Self.first, 7, "42") == ["a", "b", "c"])
        #expect(end(Self.first, 7, "43") == [], "the first end counts")
        #expect(begin(Self.first, 7, "d", again: true) == "42")
    }

    @Test("sixteen wait for one answer, and further repeats of that call are refused")
    mutating func mostWaiting() {
        #expect(begin(Self.first, 7, "a") == "run")
        for _ in 0..<15 { #expect(begin(Self.first, 7, "b", again: true) == "waits for a") }
        #expect(begin(Self.first, 7, "c", again: true) == "refused: rateLimited")
        #expect(end(Self.first, 7, "42").count == 16)
        #expect(begin(Self.first, 7, "c", again: true) == "42")
    }

    @Test("an error is an answer, too")
    mutating func failure() {
        #expect(begin(Self.first, 7) == "run")
        let name = Memory.Name(connection: Self.first, number: 7)
        _ = memory.end(name, .failure(TrebuchetError(.application, "no")), at: 0)
        #expect(begin(Self.first, 7, again: true) == "application")
    }

    @Test("a repeat whose first sending never came runs; what came first by a repeat runs once as well")
    mutating func neverCame() {
        #expect(begin(Self.first, 7, "a", again: true) == "run")
        #expect(begin(Self.first, 7, "b", again: true) == "waits for a")
    }

    @Test("numbers of different connections are different calls")
    mutating func connections() {
        #expect(begin(Self.first, 7) == "run")
        #expect(begin(Self.second, 7) == "run")
        let guessed = ConnectionName(number: Self.first.number, secret: 99)
        #expect(begin(guessed, 7, again: true) == "run")
    }

    @Test("another principal does not get to know the answer, nor whether there is one")
    mutating func principals() {
        #expect(begin(Self.first, 7, by: "ada") == "run")
        #expect(begin(Self.first, 7, by: "bob", again: true) == "refused: unknownOutcome")
        #expect(begin(Self.first, 8, by: "bob", again: true) == "refused: unknownOutcome")
        end(Self.first, 7)
        #expect(begin(Self.first, 7, by: nil, again: true) == "refused: unknownOutcome")
        #expect(begin(Self.first, 7, by: "ada", again: true) == "1")
    }

    @Test("another call under the same name is refused, while the first runs and afterwards")
    mutating func otherRequest() {
        #expect(begin(Self.first, 7, digest: 1) == "run")
        #expect(begin(Self.first, 7, digest: 2, again: true) == "refused: invalidArguments")
        end(Self.first, 7)
        #expect(begin(Self.first, 7, digest: 2, again: true) == "refused: invalidArguments")
    }

    @Test("an answer is forgotten when its time is over; then nobody knows whether the call has run")
    mutating func time() {
        #expect(begin(Self.first, 7) == "run")
        end(Self.first, 7, at: 1_000)
        #expect(begin(Self.first, 7, again: true, at: 1_099) == "1")
        #expect(begin(Self.first, 7, again: true, at: 1_100) == "refused: unknownOutcome")
        #expect(begin(Self.first, 6, again: true, at: 1_100) == "refused: unknownOutcome", "it may have come before")
        #expect(begin(Self.first, 8, again: true, at: 1_100) == "run", "a later one cannot have been forgotten")
    }

    @Test("what was forgotten stays forgotten, though answers come in another order than calls")
    mutating func forgottenOutOfOrder() {
        #expect(begin(Self.first, 7) == "run")
        #expect(begin(Self.first, 8) == "run")
        end(Self.first, 8, at: 0)
        end(Self.first, 7, at: 1)
        memory.forget(at: 200)
        #expect(begin(Self.first, 8, again: true, at: 200) == "refused: unknownOutcome")
        #expect(begin(Self.first, 7, again: true, at: 200) == "refused: unknownOutcome")
    }

    @Test("a call that runs is not forgotten, however long it takes")
    mutating func longCall() {
        #expect(begin(Self.first, 7, "a") == "run")
        #expect(begin(Self.first, 7, "b", again: true, at: 1_000_000) == "waits for a")
    }

    @Test("a connection that has ended is forgotten with its last answer, and its calls do not run any more")
    mutating func endedSession() {
        #expect(begin(Self.second, 7) == "run")
        end(Self.second, 7)
        memory.close(Self.second)
        #expect(begin(Self.second, 7, again: true, at: 99) == "1")
        memory.forget(at: 100)
        #expect(memory.connectionCount == 0)
        #expect(begin(Self.second, 7, again: true, at: 100) == "refused: unknownOutcome")
        #expect(begin(Self.second, 8, again: true, at: 100) == "refused: unknownOutcome")
        #expect(begin(Self.first, 1, again: true, at: 100) == "refused: unknownOutcome", "an earlier one, perhaps, too")
        #expect(begin(Self.first, 1, at: 100) == "run", "over the connection itself it is the first time")
        #expect(begin(Self.third, 1, again: true, at: 100) == "run", "of a later one nothing was forgotten")
    }

    @Test("a connection without calls leaves nothing behind")
    mutating func emptySession() {
        #expect(begin(Self.first, 7) == "run")
        memory.close(Self.first)
        #expect(memory.connectionCount == 1, "it runs")
        end(Self.first, 7)
        memory.forget(at: 1_000)
        memory.close(Self.second)
        #expect((memory.connectionCount, memory.count, memory.bytes) == (0, 0, 0))
    }

    @Test("when there are as many answers as may be kept, new calls are refused and the old answers stay")
    mutating func full() {
        #expect(begin(Self.first, 1) == "run")
        #expect(begin(Self.first, 2) == "run")
        #expect(begin(Self.first, 3) == "refused: rateLimited answersPerConnection")
        #expect(begin(Self.second, 1) == "run")
        #expect(begin(Self.second, 2) == "refused: rateLimited answers")
        end(Self.first, 1)
        #expect(begin(Self.second, 2, at: 99) == "refused: rateLimited answers")
        #expect(begin(Self.first, 1, again: true, at: 99) == "1")
        #expect(begin(Self.second, 2, at: 100) == "run")
    }

    /// Who calls, from where, over which connection; the limit that is reached then, if one is.
    private struct Step {
        let (connection, principal, host): (UInt64, String?, String?)
        let outcome: String

        init(_ connection: UInt64, _ principal: String?, _ host: String?, _ outcome: String = "run") {
            (self.connection, self.principal, self.host) = (connection, principal, host)
            self.outcome = outcome == "run" ? outcome : "refused: rateLimited \(outcome)"
        }
    }

    @Test("each party has a share of the memory, and each limit an error of its own that names it")
    mutating func parties() {
        let cases: [((inout ServerLimits) -> Void, [Step])] = [
            (
                { $0.answersPerPrincipal = 2 },
                [
                    Step(1, "ada", nil), Step(2, "ada", nil), Step(3, "ada", nil, "answersPerPrincipal"),
                    Step(1, "ada", nil, "answersPerPrincipal"), Step(4, "bob", nil),
                ]
            ),
            (
                { $0.answersPerHost = 2 },
                [
                    Step(1, nil, "192.0.2.1"), Step(2, "ada", "192.0.2.1"),
                    Step(3, "bob", "192.0.2.1", "answersPerHost"),
                    Step(4, "bob", "192.0.2.2"),
                ]
            ),
            (
                { $0.answersPerHost = 1 },
                [
                    Step(1, nil, "2001:db8:1:2::3"), Step(2, nil, "2001:db8:1:2:ffff::", "answersPerHost"),
                    Step(3, nil, "2001:db8:1:3::3"),
                ]
            ),
            (
                {
                    $0.answersPerPrincipal = 2
                    $0.answersPerHost = 1
                },
                [
                    Step(1, "ada", "192.0.2.1"), Step(1, "ada", "192.0.2.1", "answersPerHost"), Step(2, "ada", nil),
                    Step(3, "ada", nil, "answersPerPrincipal"),
                ]
            ),
            ({ $0.answersPerHost = 1 }, [Step(1, nil, "127.0.0.1"), Step(2, nil, "127.0.0.1"), Step(3, nil, "::1")]),
            (
                { $0.answerBytesPerConnection = 300 },
                [Step(1, nil, nil), Step(1, nil, nil, "answerBytesPerConnection"), Step(2, nil, nil)]
            ),
            (
                { $0.answerBytesPerPrincipal = 300 },
                [
                    Step(1, "ada", nil), Step(2, "ada", nil, "answerBytesPerPrincipal"), Step(3, "bob", nil),
                    Step(4, nil, nil),
                ]
            ),
            (
                { $0.answerBytesPerHost = 300 },
                [
                    Step(1, "ada", "192.0.2.1"), Step(2, "bob", "192.0.2.1", "answerBytesPerHost"),
                    Step(3, "bob", "192.0.2.2"),
                ]
            ),
            ({ $0.answerBytes = 600 }, [Step(1, nil, nil), Step(2, nil, nil), Step(3, nil, nil, "answerBytes")]),
            (
                { $0.answers = 1 },
                [Step(1, "ada", "192.0.2.1"), Step(2, "bob", "192.0.2.2", "answers"), Step(3, "ada", nil, "answers")]
            ),
        ]
        for (change, steps) in cases {
            (memory, shares) = Self.memory(change)
            var begun: [ConnectionName] = []
            for (number, step) in zip(1 as UInt64..<100, steps) {
                let name = ConnectionName(number: step.connection, secret: 0)
                let outcome = begin(name, number, by: step.principal, from: step.host)
                #expect(outcome == step.outcome, "step \(number)")
                if outcome == "run" { begun.append(name) }
                if outcome == "run" { end(name, number) }
            }
            // What was counted for a call that was refused after all has been given back.
            for name in begun { memory.close(name) }
            memory.forget(at: 100)
            #expect((memory.count, memory.bytes, memory.connectionCount) == (0, 0, 0))
            #expect((shares.answers.count, shares.bytes.count) == (0, 0))
            #expect(shares.partyCount == (0, 0), "nobody holds a share")
        }
    }

    @Test("a large answer does not take more than its connection's share of bytes")
    mutating func shareOfBytes() {
        (memory, shares) = Self.memory {
            $0.answerBytes = 1 << 20
            $0.answerBytesPerConnection = 1_000
        }
        #expect(begin(Self.first, 1) == "run")
        end(Self.first, 1, String(repeating: "x", count: 900))
        #expect(begin(Self.first, 1, again: true) == "unknownOutcome")
        #expect(memory.bytes <= 1_000)
    }

    @Test("when answers come in another order than the calls, none that was forgotten runs again")
    mutating func otherOrder() {
        #expect(begin(Self.first, 1) == "run")
        #expect(begin(Self.first, 2) == "run")
        end(Self.first, 2, at: 0)
        end(Self.first, 1, at: 50)
        memory.forget(at: 1_000)
        #expect(memory.count == 0)
        for number in [1, 2] as [UInt64] {
            #expect(begin(Self.first, number, again: true, at: 1_000) == "refused: unknownOutcome")
        }
        #expect(begin(Self.first, 3, again: true, at: 1_000) == "run")
    }

    @Test("a call costs the same whether a thousand answers are kept or twenty thousand")
    mutating func cost() {
        (memory, shares) = Self.memory {
            $0.answers = .max
            $0.answersPerConnection = .max
            $0.answerBytes = .max
            $0.answerBytesPerConnection = .max
        }
        var number: UInt64 = 0
        /// The time of the processor for 200 calls more, without that of others and in the best of some rounds.
        func time(keeping count: Int, _ memory: inout Memory) -> UInt64 {
            let request = Memory.Request(digest: 1, principal: "ada", isRepeat: false)
            func call() {
                number += 1
                let name = Memory.Name(connection: Self.first, number: number)
                _ = memory.begin(name, request, "a", at: 0)
                _ = memory.end(name, .success([1]), at: 0)
            }
            while memory.count < count { call() }
            return (0..<20).map { _ in
                let start = ProcessorTime.ofThread
                for _ in 0..<200 { call() }
                return ProcessorTime.ofThread - start
            }.min() ?? 0
        }
        let few = time(keeping: 1_000, &memory)
        let many = time(keeping: 20_000, &memory)
        #expect(many < 5 * few, "\(few) ns and \(many) ns")
    }

    @Test("much that is too old goes a little at a time, and says when there is more")
    mutating func littleByLittle() {
        (memory, shares) = Self.memory {
            $0.answers = 1_000
            $0.answersPerConnection = 1_000
            $0.answerBytes = .max
        }
        for number in 1...100 as ClosedRange<UInt64> {
            #expect(begin(Self.first, number) == "run")
            end(Self.first, number, at: number < 100 ? 0 : 40)
        }
        #expect(memory.forget(at: 0) == 100)
        #expect(memory.forget(at: 100, atMost: 30) == 0)
        #expect(memory.count == 70)
        #expect(memory.forget(at: 100, atMost: 1_000) == 40)
        #expect(memory.forget(at: 140) == nil)
        for number in 101...140 as ClosedRange<UInt64> {
            #expect(begin(Self.first, number, at: 200) == "run")
            end(Self.first, number, at: 200)
        }
        #expect(begin(Self.first, 141, at: 400) == "run")
        #expect((2...40).contains(memory.count), "a call takes some of the old ones with it, not all")
    }

    @Test("an answer that is too large is not kept, but that the call has run is")
    mutating func largeAnswer() {
        #expect(begin(Self.first, 1, "a") == "run")
        let name = Memory.Name(connection: Self.first, number: 1)
        #expect(memory.end(name, .success(Array(repeating: 1, count: 5_000)), at: 0) == ["a"])
        #expect(memory.bytes <= 2_000)
        #expect(begin(Self.first, 1, again: true) == "unknownOutcome")
    }

    @Test("bytes come back when answers are forgotten")
    mutating func bytesComeBack() {
        for round in 0..<1_000 as Range<UInt64> {
            #expect(begin(Self.first, round, at: round * 200) == "run")
            end(Self.first, round, String(repeating: "x", count: 1_500), at: round * 200)
        }
        memory.forget(at: .max)
        #expect((memory.count, memory.bytes) == (0, 0))
    }

    @Test("names are read as they were written, and those of another server are none")
    func names() throws {
        let names = ConnectionNames(reactors: 3)
        let name = names.next(onReactor: 2)
        #expect(names.next(onReactor: 0).number > name.number)
        #expect(names.reactor(of: name) == 2)
        let text = names.text(name)
        #expect(text.utf8.count <= 64)
        #expect(names.name(text) == name)
        #expect(ConnectionNames(reactors: 3).name(text) == nil)
        let parts = text.split(separator: ".")
        for _ in 0..<100 {
            let forged = ConnectionName(number: name.number, secret: .random(in: 0 ... .max))
            #expect(names.name(names.text(forged)) == nil, "the secret belongs to the number")
        }
        let next = names.next(onReactor: 1)
        let mixed = ConnectionName(number: next.number, secret: name.secret)
        #expect(names.name(names.text(mixed)) == nil)
        #expect(names.name(names.text(mixed), own: name) == nil)
        #expect(names.name(text, own: next) == name && names.name(text, own: name) == name)
        for wrong in ["", text + ".1", "\(parts[0]).\(parts[1])", "\(parts[0]).zzzzzz.\(parts[2])", "\(parts[0]).é.1"] {
            #expect(names.name(wrong) == nil, "\(wrong)")
        }
    }
}
