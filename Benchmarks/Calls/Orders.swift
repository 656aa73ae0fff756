public import Trebuchet

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// What somebody orders, about 200 bytes of JSON: plain `Codable`.
public struct Order: Codable, Sendable, Equatable {
    /// So many of something.
    public struct Line: Codable, Sendable, Equatable {
        public var sku: String
        public var quantity: Int
        public var price: Double
    }

    public var id: UUID
    public var customer: String
    public var placed: Date
    public var lines: [Line]
    public var note: String?
    public var express: Bool
}

/// What an order comes to: plain `Codable`.
public struct Receipt: Codable, Sendable, Equatable {
    public var order: UUID
    public var total: Double
    public var count: Int
    public var placed: Date
}

/// An order with the same members, whose coding is written for it.
@Wire
public struct WireOrder: Sendable, Equatable {
    /// So many of something.
    @Wire
    public struct Line: Sendable, Equatable {
        public var sku: String
        public var quantity: Int
        public var price: Double
    }

    public var id: UUID
    public var customer: String
    public var placed: Date
    public var lines: [Line]
    public var note: String?
    public var express: Bool
}

/// A receipt with the same members, whose coding is written for it.
@Wire
public struct WireReceipt: Sendable, Equatable {
    public var order: UUID
    public var total: Double
    public var count: Int
    public var placed: Date
}

/// `orders`: calls as users make them, for `trebuchet bench rpc --call`.
@Trebuchet
public distributed actor Orders {
    public distributed func place(_ order: Order) -> Receipt {
        var (total, count) = (0.0, 0)
        for line in order.lines {
            total += line.price * Double(line.quantity)
            count += line.quantity
        }
        return Receipt(order: order.id, total: total, count: count, placed: order.placed)
    }

    public distributed func submit(_ order: WireOrder) -> WireReceipt {
        var (total, count) = (0.0, 0)
        for line in order.lines {
            total += line.price * Double(line.quantity)
            count += line.quantity
        }
        return WireReceipt(order: order.id, total: total, count: count, placed: order.placed)
    }

    public distributed func scale(_ value: Double) -> Double { value * 2.5 }

    /// May suspend, and does not.
    public distributed func later(_ value: Int) async -> Int { value + 1 }
}
