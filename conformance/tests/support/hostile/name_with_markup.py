import sound

backend = sound.Backend(name="[bold red]\x1b[31mred\x1b[0m[/bold red] [/]\n\u202eevil")
backend.title = "[link=file:///]\x1b]0;owned\x07title"
