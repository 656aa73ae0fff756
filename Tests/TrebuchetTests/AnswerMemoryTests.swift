import Testing

@testable import Trebuchet

/// What becomes of calls and repeats, by the time that passes; calls are letters.
@Suite struct AnswerMemoryTests {
    private typealias Memory = AnswerMemory<String>

    private static let limits = Memory.Limits(answers: 3, answersPerSession: 2, bytes: 2_000, time: 100)
    private var memory = Memory(limits)

    private static let first = SessionName(number: 1, secret: 11)
    private static let second = SessionName(number: 2, secret: 22)
    private static let third = SessionName(number: 3, secret: 33)

    /// What `begin` says, as text; `run` for a call that runs.
    private mutating func begin(
        _ session: SessionName, _ number: UInt64, _ call: String = "a", digest: Int = 1, by principal: String? = nil,
        again: Bool = false, at now: UInt64 = 0
    ) -> String {
        let name = Memory.Name(session: session, number: number)
        let request = Memory.Request(digest: digest, principal: principal, isRepeat: again)
        return switch memory.begin(name, request, call, at: now) {
        case nil: "run"
        case .waits(let first): "waits for \(first)"
        case .answered(.success(let bytes)): String(decoding: bytes, as: UTF8.self)
        case .answered(.failure(let error)): "\(error.code)"
        case .refused(let error): "refused: \(error.code)"
        }
    }

    @discardableResult
    private mutating func end(
        _ session: SessionName, _ number: UInt64, _ answer: String = "1", at now: UInt64 = 0
    ) -> [String] {
        memory.end(Memory.Name(session: session, number: number), .success(Array(answer.utf8)), at: now)
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

    @Test("an error is an answer, too")
    mutating func failure() {
        #expect(begin(Self.first, 7) == "run")
        let name = Memory.Name(session: Self.first, number: 7)
        _ = memory.end(name, .failure(TrebuchetError(.application, "no")), at: 0)
        #expect(begin(Self.first, 7, again: true) == "application")
    }

    @Test("a repeat whose first sending never came runs; what came first by a repeat runs once as well")
    mutating func neverCame() {
        #expect(begin(Self.first, 7, "a", again: true) == "run")
        #expect(begin(Self.first, 7, "b", again: true) == "waits for a")
    }

    @Test("numbers of different connections are different calls")
    mutating func sessions() {
        #expect(begin(Self.first, 7) == "run")
        #expect(begin(Self.second, 7) == "run")
        let guessed = SessionName(number: Self.first.number, secret: 99)
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
        #expect(memory.sessionCount == 0)
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
        #expect(memory.sessionCount == 1, "it runs")
        end(Self.first, 7)
        memory.forget(at: 1_000)
        memory.close(Self.second)
        #expect((memory.sessionCount, memory.count, memory.bytes) == (0, 0, 0))
    }

    @Test("when there are as many answers as may be kept, new calls are refused and the old answers stay")
    mutating func full() {
        #expect(begin(Self.first, 1) == "run")
        #expect(begin(Self.first, 2) == "run")
        #expect(begin(Self.first, 3) == "refused: rateLimited", "of one connection")
        #expect(begin(Self.second, 1) == "run")
        #expect(begin(Self.second, 2) == "refused: rateLimited", "of all")
        end(Self.first, 1)
        #expect(begin(Self.second, 2, at: 99) == "refused: rateLimited")
        #expect(begin(Self.first, 1, again: true, at: 99) == "1")
        #expect(begin(Self.second, 2, at: 100) == "run")
    }

    @Test("an answer that is too large is not kept, but that the call has run is")
    mutating func largeAnswer() {
        #expect(begin(Self.first, 1, "a") == "run")
        let name = Memory.Name(session: Self.first, number: 1)
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
        let names = SessionNames(reactors: 3)
        let name = names.next(onReactor: 2)
        #expect(names.next(onReactor: 0).number > name.number)
        #expect(names.reactor(of: name) == 2)
        let text = names.text(name)
        #expect(text.utf8.count <= 64)
        #expect(names.name(text) == name)
        #expect(SessionNames(reactors: 3).name(text) == nil)
        let parts = text.split(separator: ".")
        for wrong in ["", text + ".1", "\(parts[0]).\(parts[1])", "\(parts[0]).zzzzzz.\(parts[2])", "\(parts[0]).é.1"] {
            #expect(names.name(wrong) == nil, "\(wrong)")
        }
    }
}
