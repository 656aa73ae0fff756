import Testing

@testable import Loading

/// Fetches that a test ends manually, one by one, in any order.
@MainActor
final class Script {
    enum Ending {
        case value(String)
        case failure(Refusal)
    }

    private var fetches: [Int: CheckedContinuation<Ending, Never>] = [:]
    private(set) var count = 0
    private(set) var open = 0
    private(set) var mostOpen = 0
    private(set) var cancelled: Set<Int> = []
    /// True if a fetch ends when its task is cancelled.
    let heedsCancellation: Bool

    init(heedsCancellation: Bool = true) { self.heedsCancellation = heedsCancellation }

    /// A loader whose fetches are those of the script.
    func loader() -> BlockLoadable<String> { BlockLoadable { try await self.fetch() } }

    func fetch() async throws -> String {
        count += 1
        open += 1
        mostOpen = max(mostOpen, open)
        defer { open -= 1 }
        let number = count
        let ending = await withTaskCancellationHandler {
            await withCheckedContinuation { fetches[number] = $0 }
        } onCancel: {
            Task { @MainActor in self.cancel(number) }
        }
        if heedsCancellation { try Task.checkCancellation() }
        switch ending {
        case .value(let value): return value
        case .failure(let error): throw error
        }
    }

    func isOpen(_ number: Int) -> Bool { fetches[number] != nil }

    func end(_ number: Int, _ ending: Ending) {
        // A fetch that has not started in time was reported; the test process continues.
        guard let fetch = fetches.removeValue(forKey: number) else {
            return _ = Issue.record("no fetch \(number) is open")
        }
        fetch.resume(returning: ending)
    }

    private func cancel(_ number: Int) {
        cancelled.insert(number)
        if heedsCancellation { fetches.removeValue(forKey: number)?.resume(returning: .value("cancelled")) }
    }
}

struct Refusal: Error, Hashable {
    var number = 0
}

/// Collects the states of a loader from now on.
@MainActor
final class Observer<Value: Hashable & Sendable> {
    private(set) var seen: [LoadingState<Value>] = []
    private(set) var hasEnded = false
    private var task: Task<Void, Never>?

    init(_ loader: some Loadable<Value>) {
        let states = loader.state
        task = Task { [weak self] in
            for await state in states { self?.seen.append(state) }
            self?.hasEnded = true
        }
    }

    deinit { task?.cancel() }

    /// The messages of the observed progress.
    var messages: [String] {
        seen.compactMap { if case .loading(let progress?) = $0 { progress.message } else { nil } }
    }
}
