public import Trebuchet

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// An order of about 200 bytes of JSON: plain `Codable`.
public struct Order: Codable, Sendable, Equatable {
    /// An article with its quantity and price.
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

/// The total of an order: plain `Codable`.
public struct Receipt: Codable, Sendable, Equatable {
    public var order: UUID
    public var total: Double
    public var count: Int
    public var placed: Date
}

/// An order with the same members and generated coding.
@Wire
public struct WireOrder: Sendable, Equatable {
    /// An article with its quantity and price.
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

/// A receipt with the same members and generated coding.
@Wire
public struct WireReceipt: Sendable, Equatable {
    public var order: UUID
    public var total: Double
    public var count: Int
    public var placed: Date
}

/// `orders`: typical calls, for `trebuchet bench rpc --call`.
@Trebuchet
public distributed actor Orders {
    public distributed func place(_ order: Order) -> Receipt {
        var (total, count) = (0.0, 0)
        for line in order.lines {
            total += line.price * Double(line.quantity)
            count &+= line.quantity
        }
        return Receipt(order: order.id, total: total, count: count, placed: order.placed)
    }

    public distributed func submit(_ order: WireOrder) -> WireReceipt {
        var (total, count) = (0.0, 0)
        for line in order.lines {
            total += line.price * Double(line.quantity)
            count &+= line.quantity
        }
        return WireReceipt(order: order.id, total: total, count: count, placed: order.placed)
    }

    public distributed func scale(_ value: Double) -> Double { value * 2.5 }

    /// An async method that never suspends.
    public distributed func later(_ value: Int) async -> Int { value + 1 }
}
