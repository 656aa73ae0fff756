public import Trebuchet

/// What somebody has in the bank.
public struct BankAccount: Codable, Sendable, Identifiable, Equatable {
    public let id: Int
    public var balance: Int

    public init(id: Int, balance: Int) {
        self.id = id
        self.balance = balance
    }
}

/// What the bank does not do.
public enum BankError: Error, Codable, Sendable, Equatable {
    /// There is no account with this id.
    case noSuchAccount(Int)
    /// An amount is at least 1.
    case wrongAmount(Int)
    /// A bank has 1 to ``Bank/largestCount`` accounts.
    case wrongCount(Int)
}

/// `bank`: accounts between which `trebuchet bench transfers` moves amounts, and that `serve --bench --data` keeps.
///
/// Whatever is transferred, the total stays.
@Trebuchet
public distributed actor Bank {
    /// What each account has at first.
    public static let startingBalance = 1_000_000

    /// So many accounts fit into what a server keeps of one state.
    public static let largestCount = 1_000_000

    @StreamedState(persisted: true) public var accounts: KeyedCollection<BankAccount> = []

    /// Opens a bank with so many accounts, 0, 1, 2 and so on, in the place of what was there.
    public distributed func open(_ count: Int) throws(BankError) {
        guard 1...Self.largestCount ~= count else { throw .wrongCount(count) }
        accounts = KeyedCollection((0..<count).map { BankAccount(id: $0, balance: Self.startingBalance) })
    }

    /// Moves an amount from one account to another; false, and nothing has changed, when it is not there.
    public distributed func transfer(from: Int, to: Int, amount: Int) throws(BankError) -> Bool {
        guard amount > 0 else { throw .wrongAmount(amount) }
        guard let payer = accounts[id: from] else { throw .noSuchAccount(from) }
        guard accounts.contains(id: to) else { throw .noSuchAccount(to) }
        guard payer.balance >= amount else { return false }
        accounts.update(id: from) { $0.balance -= amount }
        accounts.update(id: to) { $0.balance += amount }
        return true
    }

    /// What all accounts have together.
    public distributed func total() -> Int { accounts.reduce(0) { $0 + $1.balance } }
}
