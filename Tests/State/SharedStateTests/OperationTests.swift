import Synchronization
import TestSupport
import Testing

@testable import SharedState

struct Account: Sendable {
    var name = ""
    var status = OperationStatus.idle
    var error: (any Error)?
    var publishStatus = OperationStatus.idle
    var publishError: (any Error)?
}

extension OperationSlot where Value == Account {
    static let rename = OperationSlot(status: \.status, error: \.error)
    static let publish = OperationSlot(status: \.publishStatus, error: \.publishError, pendingWhile: .anyCall)
}

/// Work that ends at the test's signal, and ignores cancellation.
final class Work: Sendable {
    private let continuation = Mutex<CheckedContinuation<Int, any Error>?>(nil)

    var hasBegun: Bool { continuation.withLock { $0 != nil } }

    func run() async throws -> Int {
        try await withCheckedThrowingContinuation { continuation in
            self.continuation.withLock { $0 = continuation }
        }
    }

    func end(_ result: Result<Int, any Error>) async {
        #expect(await eventually { hasBegun }, "the work has begun")
        continuation.withLock { $0.take() }?.resume(with: result)
    }
}

@MainActor
@Suite(.timeLimit(.minutes(5)))
struct OperationTests {
    private let account = Shared(value: Account())
    private let events = RecordedEntries<String>()

    @discardableResult
    private func start(
        _ work: Work, _ name: String = "", in slot: OperationSlot<Account> = .rename
    ) -> OperationCall<Int> {
        account.start(slot) { [events] in
            events.add(name + "attempt")
        } onSuccess: { [events] in
            events.add(name + "success \($0)")
        } onError: { [events] in
            events.add(name + "error \($0)")
        } onSettled: { [events] result in
            events.add(name + "settled \((try? result.get()) ?? -1)")
        } _: {
            try await work.run()
        }
    }

    @Test("a call is attempted at once, succeeds, and is settled, in this order")
    func success() async throws {
        let work = Work()
        let call = start(work)
        #expect(events.entries == ["attempt"])
        #expect(account.wrappedValue.status == .pending)
        await work.end(.success(5))
        #expect(try await call.value == 5)
        #expect(events.entries == ["attempt", "success 5", "settled 5"])
        #expect(account.wrappedValue.status == .success)
    }

    @Test("external outcomes are published in their order, also of a call that is cancelled at once")
    func order() async throws {
        #if TREBUCHET_THREAD_SANITIZER
            let rounds = 60
        #else
            let rounds = 600
        #endif
        for round in 0..<rounds {
            let outcomes = (0..<4).map { _ in OperationOutcome<Int>() }
            let shown = RecordedEntries<String>()
            let calls = outcomes.map { outcome in
                account.start(.publish, onSettled: { shown.add("\((try? $0.get()) ?? -1)") }, until: outcome)
            }
            for _ in 0..<round % 8 { await Task.yield() }
            calls[0].cancel()
            await Task.detached { for index in 1...3 { outcomes[index].report(.success(index)) } }.value
            for call in calls { _ = try? await call.value }
            try #require(shown.entries == ["-1", "1", "2", "3"], "round \(round)")
        }
    }

    @Test("a call whose outcome object is released settles with CancellationError")
    func releasedOutcome() async throws {
        var outcome: OperationOutcome<Int>? = OperationOutcome()
        let call = account.start(
            .rename, onSettled: { [events] _ in events.add("settled") }, until: try #require(outcome))
        outcome = nil
        await #expect(throws: CancellationError.self) { try await call.value }
        #expect(events.entries == ["settled"])
    }

    @Test("a failed call has an error instead of a success, and the value shows it")
    func failure() async {
        let work = Work()
        let call = start(work)
        await work.end(.failure(TestError()))
        await #expect(throws: TestError()) { try await call.value }
        #expect(events.entries == ["attempt", "error \(TestError())", "settled -1"])
        #expect(account.wrappedValue.status == .error)
        #expect(account.wrappedValue.error is TestError)
    }

    @Test("callbacks run on the main actor and see the outcome in the value")
    func inCallbacks() async throws {
        let seen = RecordedEntries<OperationStatus>()
        let shared = account
        let call = shared.start(.rename) {
            MainActor.preconditionIsolated()
            seen.add(shared.wrappedValue.status)
        } onSuccess: { _ in
            MainActor.preconditionIsolated()
            seen.add(shared.wrappedValue.status)
        } onSettled: { _ in
            MainActor.preconditionIsolated()
            seen.add(shared.wrappedValue.status)
        } _: {
        }
        try await call.value
        #expect(seen.entries == [.pending, .success, .success])
    }

    @Test("callbacks are optional")
    func withoutCallbacks() async throws {
        try await account.start(.rename) {}.value
        #expect(account.wrappedValue.status == .success)
    }

    @Test("each of several calls has its callbacks once, and only the newest is shown")
    func overlapping() async throws {
        let works = (0..<3).map { _ in Work() }
        let calls = works.enumerated().map { start($1, "\($0): ") }
        await works[2].end(.success(2))
        _ = try await calls[2].value
        #expect(account.wrappedValue.status == .success)
        await works[0].end(.failure(TestError()))
        await works[1].end(.success(1))
        _ = try? await calls[0].value
        _ = try await calls[1].value
        #expect(account.wrappedValue.status == .success)
        #expect(account.wrappedValue.error == nil)
        for number in 0..<3 {
            #expect(events.entries.filter { $0.hasPrefix("\(number): ") }.count == 3)
        }
    }

    @Test("a slot may be pending while any call is")
    func anyCall() async throws {
        let (first, second) = (Work(), Work())
        let calls = [start(first, in: .publish), start(second, in: .publish)]
        await second.end(.success(2))
        _ = try await calls[1].value
        #expect(account.wrappedValue.publishStatus == .pending)
        await first.end(.success(1))
        _ = try await calls[0].value
        #expect(account.wrappedValue.publishStatus == .success)
        #expect(account.wrappedValue.status == .idle)
    }

    @Test("a reset detaches the call from the status, not from its callbacks")
    func reset() async {
        let work = Work()
        let call = start(work)
        account.reset(.rename)
        #expect(account.wrappedValue.status == .idle)
        await work.end(.failure(TestError()))
        _ = try? await call.value
        #expect(account.wrappedValue.status == .idle)
        #expect(account.wrappedValue.error == nil)
        #expect(events.count == 3)
    }

    @Test("callbacks run without remaining wrappers, and the value lives until then")
    func noWrapper() async {
        let backend = Backend<Account>()
        let work = Work()
        do {
            @Shared(backend.key, store: SharedStore()) var account = Account()
            $account.start(.rename, onSettled: { [events] _ in events.add("settled") }) { try await work.run() }
        }
        #expect(backend.cancelCount == 0)
        await work.end(.success(1))
        #expect(await eventually { events.count == 1 }, "the call is settled")
        #expect(await eventually { backend.cancelCount == 1 }, "the value is freed")
    }

    @Test("all wrappers of a value share its operations")
    func otherWrapper() async throws {
        let store = SharedStore()
        let backend = Backend<Account>()
        let (first, second) = (Work(), Work())
        @Shared(backend.key, store: store) var one = Account()
        @Shared(backend.key, store: store) var other = Account()
        let older = $one.start(.rename) { try await first.run() }
        let newer = $other.start(.rename) { try await second.run() }
        await first.end(.failure(TestError()))
        _ = try? await older.value
        #expect(one.status == .pending)
        await second.end(.success(1))
        _ = try await newer.value
        #expect(one.status == .success)
    }

    @Test("a part of a value has separate operations")
    func part() async throws {
        struct Whole: Sendable { var left = Account(), right = Account() }
        @Shared(value: Whole()) var whole
        try await $whole.left.perform(.rename) {}
        #expect(whole.left.status == .success)
        #expect(whole.right.status == .idle)
        await #expect(throws: TestError()) { try await $whole.left.perform(.rename) { throw TestError() } }
        #expect(whole.left.error is TestError)
    }

    @Test("the status is not saved by the key")
    func notSaved() async throws {
        let backend = Backend<Account>()
        @Shared(backend.key, store: SharedStore()) var account = Account()
        try await $account.perform(.rename) {}
        #expect(account.status == .success)
        #expect(backend.saves.isEmpty)
    }

    @Test("the async form returns the result of the work, and rethrows its error")
    func perform() async throws {
        #expect(try await account.perform(.rename) { 5 } == 5)
        await #expect(throws: TestError()) { try await account.perform(.rename) { throw TestError() } }
    }

    @Test("cancellation of the async form's task settles the call, though the work ignores it")
    func cancelled() async {
        let work = Work()
        let task = Task { [account] in try await account.perform(.rename) { try await work.run() } }
        #expect(await eventually { work.hasBegun }, "the work has begun")
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(account.wrappedValue.status == .error)
        #expect(account.wrappedValue.error is CancellationError)
        await work.end(.success(1))
        #expect(account.wrappedValue.status == .error)
    }

    @Test("cancellation of the async form's task cancels the work")
    func cancelledWork() async {
        let wasCancelled = RecordedEntries<Bool>()
        let hasBegun = RecordedEntries<Void>()
        let task = Task { [account] in
            try await account.perform(.rename) {
                hasBegun.add(())
                while !Task.isCancelled { await Task.yield() }
                wasCancelled.add(true)
            }
        }
        #expect(await eventually { hasBegun.count == 1 }, "the work has begun")
        task.cancel()
        _ = try? await task.value
        #expect(await eventually { wasCancelled.count == 1 }, "the work has noticed the cancellation")
    }

    @Test("a call that is cancelled before its start does no work, and has its callbacks nevertheless")
    func cancelledAtOnce() async {
        let work = Work()
        let call = start(work)
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        #expect(!work.hasBegun)
        #expect(events.entries.map { $0.prefix(7) } == ["attempt", "error C", "settled"])
    }

    @Test("a call within a callback is newer than the enclosing one")
    func nested() async throws {
        let inner = Work()
        let shared = account
        let call = shared.start(.rename) {
            shared.start(.rename) { try await inner.run() }
        } _: {
            1
        }
        _ = try await call.value
        #expect(shared.wrappedValue.status == .pending)
        await inner.end(.success(2))
        #expect(await eventually { shared.wrappedValue.status == .success }, "the inner call is settled")
    }

    @Test("an operation updates the value that it started with, also when its wrapper refers to another by then")
    func reassigned() async throws {
        let (wrapper, other) = (Shared(value: Account()), Shared(value: Account()))
        let first = Shared(wrapper)
        let work = Work()
        let call = wrapper.start(.rename) { try await work.run() }
        wrapper.projectedValue = other
        await work.end(.success(1))
        _ = try await call.value
        #expect(first.wrappedValue.status == .success)
        #expect(other.wrappedValue.status == .idle)
    }

    @Test("the error of a part's operation stays until a success, and completed operations leave nothing behind")
    func parts() async throws {
        struct Row: Identifiable, Sendable {
            let id: Int
            var account = Account()
        }
        @Shared(value: IdentifiedArrayOf<Row>()) var rows
        for number in 0..<20 {
            $rows.withLock { _ = $0.append(Row(id: number)) }
            let row: Shared<Row> = try #require(Shared($rows[id: number]))
            let account = row.account
            await #expect(throws: TestError()) { try await account.perform(.rename) { throw TestError() } }
            let work = Work()
            let call = account.start(.rename) { try await work.run() }
            #expect($rows.reference.operations.count == 1)
            #expect(account.wrappedValue.status == .pending)
            #expect(account.wrappedValue.error is TestError)
            await work.end(.success(1))
            _ = try await call.value
            #expect(account.wrappedValue.error == nil)
            #expect($rows.reference.operations.count == 0)
            $rows.withLock { _ = $0.remove(id: number) }
        }
    }

    @Test("a call detached by a reset does not overwrite a later one")
    func detached() async throws {
        let (first, second) = (Work(), Work())
        let earlier = start(first)
        account.reset(.rename)
        let later = account.start(.rename) { try await second.run() }
        await first.end(.failure(TestError()))
        _ = try? await earlier.value
        #expect(account.wrappedValue.status == .pending)
        #expect(account.wrappedValue.error == nil)
        await second.end(.success(1))
        _ = try await later.value
        #expect(account.wrappedValue.status == .success)
    }
}
