import Synchronization

/// The outcomes of transfers since all balances were read.
final class BankLedger: Sendable {
    struct Contents {
        /// By account: the last balance that was read, with the changes of acknowledged transfers.
        var balances: [Int]
        /// By account: the amounts received and sent by transfers with an unknown outcome.
        var mayHaveGot: [Int]
        var mayHaveGiven: [Int]
        /// Connections that tellers have.
        var connections = 0
        var transferred = 0
        var refused = 0
        var unknown = 0
        /// Unexpected outcomes.
        var strange: [String] = []

        init(_ balances: [Int]) {
            self.balances = balances
            mayHaveGot = balances.map { _ in 0 }
            mayHaveGiven = mayHaveGot
        }
    }

    private let contents: Mutex<Contents>

    init(_ balances: [Int]) { contents = Mutex(Contents(balances)) }

    var now: Contents { contents.withLock { $0 } }

    /// Answers so far.
    var answers: Int { contents.withLock { $0.transferred + $0.refused } }

    func noteConnection() { contents.withLock { $0.connections += 1 } }

    /// - Parameter wasMade: nil if the outcome is unknown.
    func note(_ wasMade: Bool?, from: Int, to: Int, amount: Int) {
        contents.withLock { contents in
            switch wasMade {
            case true?:
                contents.transferred += 1
                contents.balances[from] -= amount
                contents.balances[to] += amount
            case false?: contents.refused += 1
            case nil:
                contents.unknown += 1
                // A transfer to the same account changes nothing.
                guard from != to else { return }
                contents.mayHaveGiven[from] += amount
                contents.mayHaveGot[to] += amount
            }
        }
    }

    func note(strange: String) { contents.withLock { $0.strange.append(strange) } }
}

extension BankLedger.Contents {
    /// Returns the errors in balances that were read, and in the sum that the bank reports.
    func findings(_ found: [Int], total: Int) -> [String] {
        var findings = strange
        guard found.count == balances.count else {
            return findings + ["there are \(found.count) accounts, not \(balances.count)"]
        }
        let (all, sum) = (balances.reduce(0, +), found.reduce(0, +))
        if total != all { findings.append("the total is \(total), not \(all)") }
        if sum != all { findings.append("the balances have \(sum) together, not \(all)") }
        for (id, balance) in found.enumerated() {
            let allowed = balances[id] - mayHaveGiven[id]...balances[id] + mayHaveGot[id]
            if balance < 0 || !allowed.contains(balance) {
                findings.append("account \(id) has \(balance); expected by the acknowledged transfers: \(allowed)")
            }
        }
        // One lost transfer affects many accounts.
        return findings.count > 10 ? findings.prefix(10) + ["and \(findings.count - 10) more"] : findings
    }
}
