// Whether the browser shows notifications of this page.

class Notifications {
  permission = $state<NotificationPermission>('Notification' in window ? Notification.permission : 'denied');

  async ask() {
    this.permission = await Notification.requestPermission();
  }
}

export const notifications = new Notifications();
