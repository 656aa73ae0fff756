public import TrebuchetClient

/// An item for sale, with its highest bid.
@Wire
public struct Lot: Sendable, Equatable {
    public var title: String
    public var price = 0
    public var leader: String?

    public init(title: String, price: Int = 0, leader: String? = nil) {
        (self.title, self.price, self.leader) = (title, price, leader)
    }
}

/// The state that all bidders of an auction observe.
public struct Sale: Codable, Sendable, Equatable {
    public var lots: [String: Lot] = [:]
    public var isOpen = true
}

public struct BidTooLow: Error, Codable, Equatable {
    public let least: Int

    public init(least: Int) { self.least = least }
}

/// An actor with one member of each kind, in a model that servers and clients share.
@Trebuchet
public distributed actor Auction {
    @StreamedState public var sale: Sale = Sale()
    @StreamedEvents(buffer: 64) public var calls: String

    private var bidders: [Bidder] = []

    public distributed func offer(_ title: String, as name: String) { sale.lots[name] = Lot(title: title) }

    /// A repetition after a lost connection is not a second bid.
    @Idempotent
    public distributed func raise(_ name: String, by amount: Int, for bidder: String) throws(BidTooLow) -> Int {
        guard amount > 0 else { throw BidTooLow(least: 1) }
        sale.lots[name]?.price += amount
        sale.lots[name]?.leader = bidder
        let price = sale.lots[name]?.price ?? 0
        $calls.send("\(bidder): \(price)")
        return price
    }

    /// The bidder is a client actor.
    public distributed func enter(_ bidder: Bidder) { bidders.append(bidder) }

    /// - Returns: the responses of the registered bidders.
    public distributed func ask(_ question: String) async throws -> [String] {
        var answers: [String] = []
        for bidder in bidders { answers.append(try await bidder.answer(question)) }
        return answers
    }

    /// - Returns: the same item with a bid.
    public distributed func appraise(_ lot: Lot, bids: [Int]) -> Lot {
        Lot(title: lot.title, price: bids.max() ?? lot.price, leader: lot.leader)
    }

    public distributed func first<Value: Codable & Sendable>(of values: [Value]) -> Value? { values.first }
}

/// A client actor.
@Trebuchet
public distributed actor Bidder {
    private let name: String

    public init(name: String, actorSystem: TrebuchetActorSystem) {
        self.name = name
        self.actorSystem = actorSystem
    }

    @StreamedState public var asked: Int = 0

    public distributed func answer(_ question: String) -> String {
        asked += 1
        return "\(name): \(question)!"
    }
}
