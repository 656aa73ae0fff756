public import Trebuchet

/// An account of the bank.
public struct BankAccount: Codable, Sendable, Identifiable, Equatable {
    public let id: Int
    public var balance: Int

    public init(id: Int, balance: Int) {
        self.id = id
        self.balance = balance
    }
}

/// An error of the bank.
public enum BankError: Error, Codable, Sendable, Equatable {
    /// No account has this id.
    case noSuchAccount(Int)
    /// The amount is less than 1.
    case wrongAmount(Int)
    /// The number of accounts is not in 1 to ``Bank/largestCount``.
    case wrongCount(Int)
}

/// `bank`: accounts between which `trebuchet bench transfers` transfers amounts; `serve --bench --data` persists them.
///
/// Transfers do not change the total.
@Trebuchet
public distributed actor Bank {
    /// The initial balance of each account.
    public static let startingBalance = 1_000_000

    /// The maximum number of accounts whose state a server can persist.
    public static let largestCount = 1_000_000

    @StreamedState(persisted: true) public var accounts: KeyedCollection<BankAccount> = []

    /// Replaces all accounts by the given number of new ones, with ids from 0.
    public distributed func open(_ count: Int) throws(BankError) {
        guard 1...Self.largestCount ~= count else { throw .wrongCount(count) }
        accounts = KeyedCollection((0..<count).map { BankAccount(id: $0, balance: Self.startingBalance) })
    }

    /// Transfers an amount from one account to another. Returns false, without a change, if the balance is too low.
    public distributed func transfer(from: Int, to: Int, amount: Int) throws(BankError) -> Bool {
        guard amount > 0 else { throw .wrongAmount(amount) }
        guard let payer = accounts[id: from] else { throw .noSuchAccount(from) }
        guard accounts.contains(id: to) else { throw .noSuchAccount(to) }
        guard payer.balance >= amount else { return false }
        accounts.update(id: from) { $0.balance -= amount }
        accounts.update(id: to) { $0.balance += amount }
        return true
    }

    /// Returns the sum of all balances.
    public distributed func total() -> Int { accounts.reduce(0) { $0 + $1.balance } }
}
