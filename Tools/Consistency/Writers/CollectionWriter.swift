import Platform
import Synchronization
import TrebuchetClient

/// One writer of the collection: it sends mutation after mutation, each again until it has an outcome, and tells the judge the
/// revision that it was answered.
struct CollectionWriter {
    let number: Int
    let client: TrebuchetClient
    let strictness: Strictness
    private let secret: String
    private var random: RandomSource
    private var lastRevision = 0

    init(_ number: Int, _ client: TrebuchetClient, seed: UInt64, _ strictness: Strictness) {
        (self.number, self.client, self.strictness) = (number, client, strictness)
        secret = "\"writer-\(number)-\(UInt64.random(in: 0 ... .max))-\(UInt64.random(in: 0 ... .max))\""
        random = RandomSource(seed: seed ^ UInt64(number + 1) << 48)
    }

    mutating func run(until isOver: () -> Bool) async {
        var last = 0
        while !isOver(), last < Writing.mostMutations {
            let count = Int.random(in: 1...3, using: &random)
            await commit((1...count).map { last + $0 })
            last += count
            try? await Task.sleep(for: .milliseconds(Int.random(in: 10...70, using: &random)))
        }
        Output.printLine("wrote \(number) \(last)")
    }

    private mutating func commit(_ numbers: [Int]) async {
        ClientProgress.writers.set("writer \(number)", "commits \(numbers)")
        defer { ClientProgress.writers.set("writer \(number)", nil) }
        let mutations = numbers.map { Writing.mutation(number, $0) }.joined(separator: ",")
        while true {
            do {
                let answer = try await client.call(
                    actor: Writing.collection, target: "commit(_:from:)",
                    arguments: [Array("[\(mutations)]".utf8), Array(secret.utf8)])
                let outcomes = try Writing.decode([Writing.Outcome].self, answer)
                if outcomes.map(\.number) != numbers {
                    Output.finding("writer \(number) asked for \(numbers) and was answered \(outcomes.map(\.number))")
                }
                for outcome in outcomes { take(outcome) }
                return
            } catch {
                guard Writing.mayBeRepeated(error), strictness != .ordered || Writing.isClosed(error) else {
                    return Output.finding("writer \(number): the mutations \(numbers) ended with \(error)")
                }
                ClientProgress.writers.set("writer \(number)", "repeats \(numbers) after \(error)")
                try? await Task.sleep(for: .milliseconds(20))
            }
        }
    }

    private mutating func take(_ outcome: Writing.Outcome) {
        if strictness == .mayLose {
            // A lost mutation may be applied again, or answered as applied.
            guard outcome.error == nil else { return }
        } else if let error = outcome.error {
            Output.finding("writer \(number): mutation \(outcome.number) was refused: \(error)")
        } else if outcome.revision <= lastRevision {
            Output.finding(
                "writer \(number): mutation \(outcome.number) was answered revision \(outcome.revision) after \(lastRevision)"
            )
        }
        lastRevision = outcome.revision
        Output.printLine("committed \(number) \(outcome.number) \(outcome.revision)")
    }
}

/// The losses that clients must tolerate.
enum Strictness: String {
    case usual
    /// Acknowledged and published data may be lost.
    case mayLose = "may-lose"
    /// The same once, by a restore: data goes back at most once, and revisions of a collection never do.
    case restored
    /// Nodes come and go in order alone: no call fails, and no stream that leaves nothing out overflows.
    case ordered

    var mayLose: Bool { self == .mayLose || self == .restored }

    var stepsBack: StepsBack {
        switch self {
        case .usual, .ordered: .none
        case .restored: .one
        case .mayLose: .any
        }
    }
}
