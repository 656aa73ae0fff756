import Foundation
import Trebuchet

/// The code of Docs/Guides/HTTP.md, which `HTTPMethodTests` runs.
struct Order: Codable, Sendable {
    var id: Int
    var items: [String: Int] = [:]
}

struct NoSuchOrder: Error, Codable { var id: Int }

@Trebuchet
distributed actor OrderDesk {
    private var orders = [1: Order(id: 1)]

    @HTTP(.get, "/desk/:id")
    distributed func order(id: Int) throws(NoSuchOrder) -> Order {
        guard let order = orders[id] else { throw NoSuchOrder(id: id) }
        return order
    }

    @Idempotent
    @HTTP(.post, "/desk/:id/items")
    distributed func addItem(id: Int, product: String, count: Int?) throws(NoSuchOrder) -> Order {
        guard orders[id] != nil else { throw NoSuchOrder(id: id) }
        orders[id]?.items[product, default: 0] += count ?? 1
        return orders[id] ?? Order(id: id)
    }
}

func serveOrders(on server: TrebuchetServer) async throws {
    await server.expose(OrderDesk(actorSystem: server.actorSystem), as: "desk")
    try server.http { routes in routes.serve(OrderDesk.self, as: "desk") }
}
