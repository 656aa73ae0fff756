internal import Transports
internal import TrebuchetWire

/// The routes of a server, by the components of their paths. A pure value.
struct RouteTree: Sendable {
    /// A route with the values of its parameters.
    struct Match: Sendable {
        /// The routes of the path by method; not empty.
        let routes: [String: HTTPRoute]
        /// The values of the parameters, in the order of the path.
        let values: [String]

        /// The route of a method; nil without one. A route of GET serves HEAD too.
        func route(of method: String) -> HTTPRoute? {
            routes[method] ?? (method == "HEAD" ? routes["GET"] : nil)
        }

        /// The methods for the response field `Allow`.
        var allowedMethods: String {
            var methods = Set(routes.keys)
            if methods.contains("GET") { methods.insert("HEAD") }
            return methods.sorted().joined(separator: ", ")
        }
    }

    private struct Node: Sendable {
        var literals: [String: Node] = [:]
        /// The node of any other component: none or one.
        var parameter: [Node] = []
        var routes: [String: HTTPRoute] = [:]
    }

    private var root = Node()
    private(set) var isEmpty = true

    /// Adds a route. Returns false, without a change, if another route has the same method and the same path, whatever its parameters
    /// are named.
    mutating func insert(_ route: HTTPRoute) -> Bool {
        guard Self.insert(route, route.components[...], at: &root) else { return false }
        isEmpty = false
        return true
    }

    private static func insert(
        _ route: HTTPRoute, _ rest: ArraySlice<HTTPRoute.Component>, at node: inout Node
    ) -> Bool {
        switch rest.first {
        case nil:
            guard node.routes[route.method] == nil else { return false }
            node.routes[route.method] = route
            return true
        case .literal(let text)?: return insert(route, rest.dropFirst(), at: &node.literals[text, default: Node()])
        case .parameter?:
            if node.parameter.isEmpty { node.parameter.append(Node()) }
            return insert(route, rest.dropFirst(), at: &node.parameter[0])
        }
    }

    /// Returns the routes of a path, given its decoded components; nil if there are none. From the first component on, a literal takes
    /// precedence over a parameter.
    func match(_ components: [String]) -> Match? { Self.match(components[...], [], at: root) }

    private static func match(_ rest: ArraySlice<String>, _ values: [String], at node: Node) -> Match? {
        guard let component = rest.first else {
            return node.routes.isEmpty ? nil : Match(routes: node.routes, values: values)
        }
        if let next = node.literals[component], let found = match(rest.dropFirst(), values, at: next) { return found }
        guard let next = node.parameter.first, !component.isEmpty else { return nil }
        return match(rest.dropFirst(), values + [component], at: next)
    }

    /// Splits a percent-encoded path into its decoded components; nil for a path that is not UTF-8 or malformed. `/` has none.
    static func components(of path: String) -> [String]? {
        guard path.hasPrefix("/") else { return nil }
        if path == "/" { return [] }
        var components: [String] = []
        for part in path.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            guard let bytes = try? PagePath.decode(Array(part.utf8)[...]),
                let text = String(validating: bytes, as: UTF8.self)
            else { return nil }
            components.append(text)
        }
        return components
    }
}

/// A route: a method, a path and a handler.
struct HTTPRoute: Sendable {
    /// The handler of requests.
    enum Action: Sendable {
        case program(HTTPRoutes.Handler)
        case method(HTTPServedMethod)
    }

    /// A component of a path.
    enum Component: Sendable, Equatable {
        case literal(String)
        case parameter(String)
    }

    let method: String
    let path: String
    let components: [Component]
    let isAuthenticated: Bool
    /// The maximum size of the body; nil for that of a message.
    let bodyBytes: Int?
    /// The maximum time of the handler; nil for that of a call.
    let timeout: Duration?
    let action: Action

    var parameterNames: [String] {
        components.compactMap { component -> String? in
            if case .parameter(let name) = component { name } else { nil }
        }
    }

    /// First components of paths that the server or its other endpoints use.
    static let reserved: Set<String> = [
        "healthz", "livez", "readyz", "metrics", "schema.json", HTTPCallRequest.component,
        HTTPStreamRequest.component,
    ]

    /// Parses a path such as `/orders/:id`. Throws `addressInvalid`.
    static func components(of path: String) throws(TransportError) -> [Component] {
        func invalid(_ reason: String) -> TransportError {
            TransportError(.addressInvalid, "route '\(path)': \(reason)")
        }
        guard let parts = RouteTree.components(of: path) else {
            throw invalid("a path begins with a slash and is percent-encoded, such as /orders/:id")
        }
        var components: [Component] = []
        for part in parts {
            guard !part.isEmpty else { throw invalid("a component is empty") }
            guard part.hasPrefix(":") else {
                components.append(.literal(part))
                continue
            }
            let name = String(part.dropFirst())
            guard !name.isEmpty, name.utf8.allSatisfy(isNameByte) else {
                throw invalid("the name of a parameter has letters, digits and underscores")
            }
            guard !components.contains(.parameter(name)) else { throw invalid("two parameters are named '\(name)'") }
            components.append(.parameter(name))
        }
        if case .literal(let first)? = components.first, reserved.contains(first) {
            throw invalid("'/\(first)' belongs to the server")
        }
        return components
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "_"): true
        default: false
        }
    }
}
