// Views as an app has them.

import Observation
import SwiftUI
import TrebuchetClient

@Trebuchet
distributed actor Guestbook {
    struct Entry: Codable, Sendable, Identifiable {
        var id: Int
        var text: String
    }

    struct State: Codable, Sendable {
        var entries: [Entry] = []
    }

    @StreamedState var state: State = State()

    distributed func sign(_ text: String) { state.entries.append(Entry(id: state.entries.count, text: text)) }
}

struct GuestbookView: View {
    @ObservedActor("guests", observe: \Guestbook.observeState) var state

    var body: some View {
        if let state {
            List(state.entries) { Text($0.text) }
            Button("Sign") { Task { try await $state.actor?.sign("Ada") } }
        } else if $state.isConnecting {
            ProgressView("Opening the book")
        } else if let error = $state.error {
            Text("\(error)")
            Button("Again") { $state.retry() }
        }
        if case .connecting(let attempt, _) = $state.connectionState { Text("Attempt \(attempt)") }
    }
}

/// The name is an input, and may change while the view exists.
struct NamedGuestbookView: View {
    @ObservedActor<Guestbook, Guestbook.State> private var state: Guestbook.State?
    private let title: String

    init(_ name: String, client: TrebuchetClient) {
        _state = ObservedActor(name, observe: \Guestbook.observeState, client: client)
        title = name
    }

    var body: some View { Text("\(title): \(state?.entries.count ?? 0)") }
}

@MainActor @Observable final class GuestbookModel {
    @ObservationIgnored @ObservedActor("guests", observe: \Guestbook.observeState) var state

    func start(_ client: TrebuchetClient) { $state.connect(client) }
}

struct Screen: View {
    let client: TrebuchetClient
    @Environment(\.trebuchetClient) private var outer
    @State private var model = GuestbookModel()

    var body: some View {
        GuestbookView().trebuchet(client)
        NamedGuestbookView("others", client: outer ?? client)
        Text("\(model.state?.entries.count ?? 0)")
    }
}
